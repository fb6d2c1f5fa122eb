#!lua flags=allow-oom
-- release.lua: give entries back at once, as fresh entries that any worker may take, with no run
-- counted against them. In a lane with parked requests, each entry goes before the parked requests
-- of its tenant and rank.
--   KEYS.ready      the stream
--   KEYS.runs       hash: the runs of each suspect, by entry (begin-alone.lua)
--   KEYS.load       the counts (load.lua)
--   ARGV.group
--   ARGV.consumer
--   ARGV.entries[]
--   Returns how many entries it gave back; it skips entries that the caller does not own
local load = KEYS.load
-- include ../../pieces/parking.lua
local ready = KEYS.ready
local released = 0
-- Each entry goes to the front, so the loop begins with the last.
local from, to, by = 1, #ARGV.entries, 1
if isParking(ready) then from, to, by = #ARGV.entries, 1, -1 end
for i = from, to, by do
  local entry = ARGV.entries[i]
  if #redis.call('XPENDING', ready, ARGV.group, entry, entry, 1, ARGV.consumer) == 1 then
    local found = redis.call('XRANGE', ready, entry, entry)[1]
    redis.call('XACK', ready, ARGV.group, entry)
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', KEYS.runs, entry)
    if found then
      queueAgain(ready, entry, found[2])
      released = released + 1
    end
  end
end
refillIfParking(ready, released)
return released
