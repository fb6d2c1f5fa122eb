#!lua flags=allow-oom
-- requeue.lua: queue entries again that Redis would never deliver again: they are not pending, and
-- lie before the group's last delivered id. Only outside interference causes this (XGROUP
-- DELCONSUMER, XACK by hand).
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3] the counts (load.lua)
--   ARGV[1] group   ARGV[2..] candidate entries, none newer than the group's last delivered id
--   Returns how many entries it queued again
local load = KEYS[3]
-- include ../../pieces/parking.lua
local ready, runs = KEYS[1], KEYS[2]
local fresh = 0
for i = 2, #ARGV do
  local entry = ARGV[i]
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  if found and #redis.call('XPENDING', ready, ARGV[1], entry, entry, 1) == 0 then
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', runs, entry)
    queueAgain(ready, entry, found[2])
    fresh = fresh + 1
  end
end
refillIfParking(ready, fresh)
return fresh
