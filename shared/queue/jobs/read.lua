#!lua flags=allow-oom,no-writes
-- read.lua: tell how a job stands.
--   KEYS[1] record of the job   KEYS[2] what is counted (load.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the job   ARGV[3] group
--   ARGV[4] how many buckets there are
--   Returns a view (view.lua), or nil where there is no such job, or not any more
local load = KEYS[2]
-- include view.lua
-- include ../time.lua
return viewOf(load, ARGV[3], now, ARGV[1], ARGV[2], tonumber(ARGV[4]))
