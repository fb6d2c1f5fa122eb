#!lua flags=allow-oom
-- discard.lua: set aside entries that the worker cannot read as a step. Otherwise they would come
-- back for ever.
--   KEYS.ready      the stream
--   KEYS.dead       the stream of requests set aside
--   KEYS.load       the counts (load.lua)
--   ARGV.group
--   ARGV.consumer
--   ARGV.limits     limits of requests set aside (set-aside.lua)
--   ARGV.entries[]
--   Returns how many entries the script set aside; it skips entries that the caller does not own
local load = KEYS.load
-- include ../../pieces/parking.lua
-- include ../../pieces/set-aside.lua
local discarded = 0
-- include ../../pieces/time.lua
for i = 1, #ARGV.entries do
  local entry = ARGV.entries[i]
  if #redis.call('XPENDING', KEYS.ready, ARGV.group, entry, entry, 1, ARGV.consumer) == 1 then
    local found = redis.call('XRANGE', KEYS.ready, entry, entry)[1]
    if found then setAside(KEYS.dead, ARGV.limits, now, 'reason', 'unreadable', unpack(found[2])) end
    redis.call('XACK', KEYS.ready, ARGV.group, entry)
    redis.call('XDEL', KEYS.ready, entry)
    discarded = discarded + 1
  end
end
refillIfParking(KEYS.ready, discarded)
return discarded
