#!lua
-- write-refusal.lua: write nothing, and look whether the next call of admission fits into the
-- memory. As the script declares neither `no-writes` nor `allow-oom`, Redis refuses to begin it
-- whenever it refuses writes: when it is full, cannot write to its disk, is a replica, or has too
-- few replicas. As it writes nothing, asking costs neither memory nor disk.
--   KEYS[1] any key: it says which master of a Cluster is asked
--   ARGV[1] room: bytes that a call of admission takes at most
--   Returns 'taken'    writes are taken
--           'full'     only small ones are: less than `room` is left below maxmemory. Redis counts
--                      the bytes of a call before it runs the call, so it refuses a call that is
--                      larger than this script although it begins this script
local room = tonumber(ARGV[1])
-- A user of Redis that may not ask for it is answered by what Redis refuses itself.
local info = redis.pcall('INFO', 'memory')
if type(info) ~= 'string' then return 'taken' end
local function bytes(name)
  return tonumber(string.match(info, '\n' .. name .. ':(%d+)') or 0)
end
local most = bytes('maxmemory')
local used = bytes('used_memory') - bytes('mem_not_counted_for_evict')
return most > 0 and used + room > most and 'full' or 'taken'
