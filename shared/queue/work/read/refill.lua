#!lua flags=allow-oom
-- refill.lua: move parked requests to the ready streams of several lanes, for a worker that has
-- room and finds nothing there. Scripts that make room also refill. This script is for two cases
-- that they cannot see: other workers hold all ready entries for long, or a person has deleted the
-- entries.
--   KEYS.load     the counts (load.lua)
--   KEYS.ready[]  the stream of each lane; in a cluster all lanes are of the same bucket
--   ARGV.group
--   ARGV.lanes[]  for each ready stream:
--     .model      number of its model
--     .room       how many requests of that model the worker can take
--   Returns how many requests it moved; if none is parked, a single command shows that
local load = KEYS.load
-- include ../../pieces/parking.lua
local queues = {}
for i = 1, #KEYS.ready do queues[i] = laneKeyOf('queue', KEYS.ready[i]) end
if redis.call('EXISTS', unpack(queues)) == 0 then return 0 end
local moved, room = 0, {}
for i = 1, #KEYS.ready do
  local ready = KEYS.ready[i]
  if isParking(ready) then
    local model = ARGV.lanes[i].model
    room[model] = room[model] or tonumber(ARGV.lanes[i].room)
    -- An error means that no worker has made the group yet, so no worker has an entry.
    local pending = redis.pcall('XPENDING', ready, ARGV.group)
    local undelivered = redis.call('XLEN', ready) - (pending.err and 0 or pending[1])
    local fresh = unpark(ready, math.max(0, room[model] - undelivered))
    room[model] = room[model] - undelivered - fresh
    moved = moved + fresh + refill(ready, 0)
  end
end
return moved
