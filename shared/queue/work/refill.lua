#!lua flags=allow-oom
-- refill.lua: move parked requests to the ready streams of several lanes, for a worker that has
-- room and finds nothing there. The scripts that make room do so by themselves; this is for what
-- they cannot know: that others hold all that is ready, for long, or that somebody has deleted it.
--   KEYS     ready streams; in a cluster of one bucket. Then what is counted (load.lua)
--   ARGV[1] group   then two per lane:  number of its model, how many the worker can take of that
--   Returns how many were moved; where nothing is parked, one look tells
local load = KEYS[#KEYS]
-- include ../parking.lua
local queues = {}
for i = 1, #KEYS - 1 do queues[i] = laneKeyOf('queue', KEYS[i]) end
if redis.call('EXISTS', unpack(queues)) == 0 then return 0 end
local moved, room = 0, {}
for i = 1, #KEYS - 1 do
  if isParking(KEYS[i]) then
    local model = ARGV[2 * i]
    room[model] = room[model] or tonumber(ARGV[2 * i + 1])
    -- An error: no worker has made the group yet, so none has an entry.
    local pending = redis.pcall('XPENDING', KEYS[i], ARGV[1])
    local undelivered = redis.call('XLEN', KEYS[i]) - (pending.err and 0 or pending[1])
    local fresh = unpark(KEYS[i], math.max(0, room[model] - undelivered))
    room[model] = room[model] - undelivered - fresh
    moved = moved + fresh + refill(KEYS[i], 0)
  end
end
return moved
