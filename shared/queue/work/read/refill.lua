#!lua flags=allow-oom
-- refill.lua: move parked requests to the ready streams of several lanes, for a worker that has
-- room and finds nothing there. Scripts that make room also refill. This script is for two cases
-- that they cannot see: other workers hold all ready entries for long, or a person has deleted the
-- entries.
--   KEYS     ready streams; in a cluster of the same bucket. Last come the counts (load.lua)
--   ARGV[1] group   then two per lane:  number of its model, how many requests of that model the
--                                       worker can take
--   Returns how many requests it moved; if none is parked, a single command shows that
local load = KEYS[#KEYS]
-- include ../../pieces/parking.lua
local queues = {}
for i = 1, #KEYS - 1 do queues[i] = laneKeyOf('queue', KEYS[i]) end
if redis.call('EXISTS', unpack(queues)) == 0 then return 0 end
local moved, room = 0, {}
for i = 1, #KEYS - 1 do
  if isParking(KEYS[i]) then
    local model = ARGV[2 * i]
    room[model] = room[model] or tonumber(ARGV[2 * i + 1])
    -- An error means that no worker has made the group yet, so no worker has an entry.
    local pending = redis.pcall('XPENDING', KEYS[i], ARGV[1])
    local undelivered = redis.call('XLEN', KEYS[i]) - (pending.err and 0 or pending[1])
    local fresh = unpark(KEYS[i], math.max(0, room[model] - undelivered))
    room[model] = room[model] - undelivered - fresh
    moved = moved + fresh + refill(KEYS[i], 0)
  end
end
return moved
