#!lua flags=allow-oom
-- release.lua: give entries back at once, as fresh entries that any worker may take, with no run
-- counted against them. In a lane with parked requests, each entry goes before the parked requests
-- of its tenant and rank.
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3] the counts (load.lua)
--   ARGV[1] group   ARGV[2] consumer   ARGV[3..] entries
--   Returns how many entries it gave back; it skips entries that the caller does not own
local load = KEYS[3]
-- include ../../pieces/parking.lua
local ready, runs = KEYS[1], KEYS[2]
local released = 0
-- Each entry goes to the front, so the loop begins with the last.
local from, to, by = 3, #ARGV, 1
if isParking(ready) then from, to, by = #ARGV, 3, -1 end
for i = from, to, by do
  local entry = ARGV[i]
  if #redis.call('XPENDING', ready, ARGV[1], entry, entry, 1, ARGV[2]) == 1 then
    local found = redis.call('XRANGE', ready, entry, entry)[1]
    redis.call('XACK', ready, ARGV[1], entry)
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', runs, entry)
    if found then
      queueAgain(ready, entry, found[2])
      released = released + 1
    end
  end
end
refillIfParking(ready, released)
return released
