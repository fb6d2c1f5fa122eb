#!lua flags=allow-oom
-- requeue.lua: queue entries again that Redis would never deliver again: they are not pending, and
-- lie before the group's last delivered id. Only outside interference causes this (XGROUP
-- DELCONSUMER, XACK by hand).
--   KEYS.ready      the stream
--   KEYS.runs       hash: the runs of each suspect, by entry (begin-alone.lua)
--   KEYS.load       the counts (load.lua)
--   ARGV.group
--   ARGV.entries[]  candidates, none newer than the group's last delivered id
--   Returns how many entries it queued again
local load = KEYS.load
-- include ../../pieces/parking.lua
local ready = KEYS.ready
local fresh = 0
for i = 1, #ARGV.entries do
  local entry = ARGV.entries[i]
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  if found and #redis.call('XPENDING', ready, ARGV.group, entry, entry, 1) == 0 then
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', KEYS.runs, entry)
    queueAgain(ready, entry, found[2])
    fresh = fresh + 1
  end
end
refillIfParking(ready, fresh)
return fresh
