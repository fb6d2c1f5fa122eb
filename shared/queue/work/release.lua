#!lua flags=allow-oom
-- release.lua: give entries back at once: they become fresh entries that any worker may take, with
-- no run counted against them. Where requests are parked, they go before those.
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3] what is counted (load.lua)
--   ARGV[1] group   ARGV[2] consumer   ARGV[3..] entries
--   Returns how many were given back; those that the caller does not own are left alone
local load = KEYS[3]
-- include ../parking.lua
local ready, runs = KEYS[1], KEYS[2]
local released = 0
-- Each goes before the one that went before it, so the last comes first.
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
