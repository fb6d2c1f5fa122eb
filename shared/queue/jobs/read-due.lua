#!lua flags=allow-oom,no-writes
-- read-due.lua: tell when a job is due that waits.
--   KEYS[1] record of the job   ARGV[1] how many requests it has had
--   Returns ms until then, 0 or less where it is due; nil where it does not wait, or has had more
-- include ../later.lua
local found = redis.call('HMGET', KEYS[1], 'next', 'made')
local due = found[2] == ARGV[1] and dueOf(found[1], found[2])
if not due then return nil end
-- include ../time.lua
return due - now
