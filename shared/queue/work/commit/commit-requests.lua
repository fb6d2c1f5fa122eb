#!lua flags=allow-oom
-- commit-requests.lua: commit stateless requests, as commit-steps.lua commits steps: if this worker
-- still owns the entry, write the outcome and acknowledge the entry.
--   KEYS.load         the counts (load.lua)
--   KEYS.ready[]      the stream of each lane of the call, all of the same model. The script builds
--                     the other keys from the tag of the lane's bucket, so in a cluster all lanes
--                     are of the same bucket
--   ARGV.group
--   ARGV.consumer
--   ARGV.limits       limits of requests set aside (set-aside.lua)
--   ARGV.streams      whether requests are streams, each with a log that lives as long as the
--                     outcome, 0/1
--   ARGV.lanes[]      for each ready stream:
--     .base           tag of the bucket and model, `{tag}:model`
--     .pin            `version:digest`
--     .oldest         the oldest entry
--     .newest         the newest entry
--   ARGV.requests[]
--     .lane           number of the lane, from 1
--     .entry
--     .name           name of the request
--     .kind           of the outcome
--     .body           of the outcome
--     .ttl            outcome TTL ms
--     .apart          place of the outcome (settlement.lua)
--     .reason         reason to set the request aside, or ''
--     .spent          what the run took (usage.lua), or ''
--   Returns a word for each request: 'committed' 'superseded' 'already' 'lost', as in
--   commit-steps.lua
local load = KEYS.load
-- include ../read/owned.lua
-- include settlement.lua
-- include ../../pieces/set-aside.lua
local group, consumer = ARGV.group, ARGV.consumer
local first = ARGV.lanes.FIRST + ARGV.lanes.WIDTH * #KEYS.ready
local count = (#ARGV - first + 1) / ARGV.requests.WIDTH
-- include ../../pieces/time.lua
local now = string.format('%d', now)

local lanes = {}
for i = 1, #KEYS.ready do
  local lane = {ready = KEYS.ready[i], base = ARGV.lanes[i].base, forgotten = {}}
  lane.runs = 'runs:' .. lane.base .. ':' .. ARGV.lanes[i].pin
  -- Almost always there is no suspect and no parked request, and a single command shows that.
  lane.unusual = redis.call('EXISTS', lane.runs, laneKeyOf('queue', lane.ready)) > 0
  lane.parking = lane.unusual and isParking(lane.ready) and lane.ready
  lane.owns = ownedBy(group, consumer, lane.ready, ARGV.lanes[i].oldest, ARGV.lanes[i].newest, 2 * count + 64)
  lanes[i] = lane
end

local requests = {}
for at = first, #ARGV, ARGV.requests.WIDTH do
  requests[#requests + 1] = lanes[tonumber(ARGV.requests(at).lane)].base .. ':' .. ARGV.requests(at).name
end
local ending = openEndings(load, requests, now, ARGV.streams == '1')

local function commit(lane, entry, request, kind, body, ttl, apart, reason, spent)
  local name = lane.base .. ':' .. request
  local isOpen, hasEnded, brief, keep = ending.look(name)
  local owned = lane.owns(entry)
  if not owned then
    ending.drop(name, apart)
    if hasEnded then return 'already' end
    return 'lost'
  end
  lane.forgotten[#lane.forgotten + 1] = entry
  ending.leave(name, lane.parking)
  -- The worker ran even a stream that its client cancelled.
  if isOpen or ARGV.streams == '1' then noteSpent(name, spent, 0) end
  if not isOpen then
    ending.drop(name, apart)
    return 'superseded'
  end
  ending.give(name, brief, keep, owned, kind, body, ttl, apart)
  if reason ~= '' then
    setAside('dead:' .. lane.base, ARGV.limits, now, 'request', requestIn(name), 'job', jobIn(name), 'sequence', '', 'step', '0',
      'reason', reason,
      'runs', (redis.call('HGET', lane.runs, entry) or '0'):match(PATTERN.runs(count)), 'frame', frameOf(lane.ready, entry))
  end
  return 'committed'
end

local said = {}
for at = first, #ARGV, ARGV.requests.WIDTH do
  said[#said + 1] = commit(lanes[tonumber(ARGV.requests(at).lane)], ARGV.requests(at).entry, ARGV.requests(at).name,
    ARGV.requests(at).kind, ARGV.requests(at).body, ARGV.requests(at).ttl, ARGV.requests(at).apart,
    ARGV.requests(at).reason, ARGV.requests(at).spent)
end
ending.close()
for i = 1, #lanes do
  local lane = lanes[i]
  if #lane.forgotten > 0 then
    redis.call('XACK', lane.ready, group, unpack(lane.forgotten))
    redis.call('XDEL', lane.ready, unpack(lane.forgotten))
    if lane.unusual then redis.call('HDEL', lane.runs, unpack(lane.forgotten)) end
    if lane.parking then refill(lane.ready, #lane.forgotten) end
  end
end
return said
