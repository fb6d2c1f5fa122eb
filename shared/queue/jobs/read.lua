#!lua flags=allow-oom,no-writes
-- read.lua: read how a job stands.
--   KEYS.record   of the job
--   KEYS.load     the counts (load.lua)
--   ARGV.base     tag of the bucket and model, `{tag}:model`
--   ARGV.job      name of the job
--   ARGV.group
--   ARGV.buckets  how many buckets there are
--   Returns a view (records/jobs.ts), or nil if there is no such job, or no longer
local load = KEYS.load
-- include view.lua
-- include ../pieces/time.lua
local view = viewOf(load, ARGV.group, now, ARGV.base, ARGV.job, tonumber(ARGV.buckets))
return view and packJobView(view)
