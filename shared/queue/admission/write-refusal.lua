#!lua
-- write-refusal.lua: look whether the next admission call fits into the memory, and write nothing.
-- The script declares neither `no-writes` nor `allow-oom`, so Redis refuses to begin it whenever
-- Redis refuses writes: when Redis is full, cannot write to its disk, is a replica, or has too few
-- replicas. The script writes nothing, so the question costs neither memory nor disk.
--   KEYS.key   any key: its slot chooses the master of a Cluster
--   ARGV.room  most bytes of an admission call
--   Returns 'taken'    Redis takes writes
--           'full'     Redis takes only small writes: less than `room` is left below maxmemory.
--                      Redis counts the bytes of a call before it runs the call, so it refuses a
--                      larger call than this although it begins this script
local room = tonumber(ARGV.room)
-- A user of Redis that may not call INFO learns only of the refusals of Redis itself.
local info = redis.pcall('INFO', 'memory')
if type(info) ~= 'string' then return 'taken' end
local function bytes(name)
  return tonumber(string.match(info, '\n' .. name .. ':(%d+)') or 0)
end
local most = bytes('maxmemory')
local used = bytes('used_memory') - bytes('mem_not_counted_for_evict')
return most > 0 and used + room > most and 'full' or 'taken'
