#!lua flags=allow-oom,no-writes
-- read-due.lua: read when a waiting job is due.
--   KEYS.record  of the job
--   ARGV.made    how many requests the job has had
--   Returns ms until then, 0 or less if the job is due; nil if it does not wait, or has had more
-- include ../pieces/later.lua
local found = redis.call('HMGET', KEYS.record, 'next', 'made')
local due = found[2] == ARGV.made and dueOf(found[1], found[2])
if not due then return nil end
-- include ../pieces/time.lua
return due - now
