#!lua flags=allow-oom,no-writes
-- read.lua: read how a job stands.
--   KEYS[1] record of the job   KEYS[2] key of the counts (load.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the job   ARGV[3] group
--   ARGV[4] how many buckets there are
--   Returns a view (view.lua), or nil if there is no such job, or no longer
local load = KEYS[2]
-- include view.lua
-- include ../pieces/time.lua
return viewOf(load, ARGV[3], now, ARGV[1], ARGV[2], tonumber(ARGV[4]))
