#!lua flags=allow-oom
-- discard.lua: set aside entries that the worker cannot read as a step. Otherwise they would come
-- back for ever.
--   KEYS[1] ready stream   KEYS[2] dead stream   KEYS[3] the counts (load.lua)
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] limits of requests set aside (set-aside.lua)
--   ARGV[4..] entries
--   Returns how many entries the script set aside; it skips entries that the caller does not own
local load = KEYS[3]
-- include ../../pieces/parking.lua
-- include ../../pieces/set-aside.lua
local discarded = 0
-- include ../../pieces/time.lua
for i = 4, #ARGV do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) == 1 then
    local found = redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])[1]
    if found then setAside(KEYS[2], ARGV[3], now, 'reason', 'unreadable', unpack(found[2])) end
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
    redis.call('XDEL', KEYS[1], ARGV[i])
    discarded = discarded + 1
  end
end
refillIfParking(KEYS[1], discarded)
return discarded
