#!lua flags=allow-oom
-- commit-requests.lua: commit stateless requests, as commit-steps.lua commits steps: if this worker
-- still owns the entry, write the outcome and acknowledge the entry.
--   KEYS     the ready stream of each lane of the call, all of the same model. The script builds
--            the other keys from the tag of the lane's bucket, so in a cluster all lanes are of the
--            same bucket. Last come the counts (load.lua)
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] limits of requests set aside (set-aside.lua)
--   ARGV[4] whether requests are streams, each with a log that lives as long as the outcome, 0/1
--   then four per lane:  tag of the bucket and model `{tag}:model`, pin `version:digest`, the
--                        oldest and the newest entry
--   then eight per request:  number of the lane from 1, entry, name of the request, outcome kind,
--                            outcome body, outcome TTL ms, place of the outcome (`apart` in
--                            settlement.lua), reason to set the request aside or ''
--   Returns a word for each request: 'committed' 'superseded' 'already' 'lost', as in
--   commit-steps.lua
local load, laneCount = KEYS[#KEYS], #KEYS - 1
-- include ../read/owned.lua
-- include settlement.lua
-- include ../../pieces/set-aside.lua
local group, consumer = ARGV[1], ARGV[2]
local first = 4 + 4 * laneCount
local count = (#ARGV - first) / 8
-- include ../../pieces/time.lua
local now = string.format('%.0f', now)

local lanes = {}
for i = 1, laneCount do
  local a = 4 * i
  local lane = {ready = KEYS[i], base = ARGV[a + 1], forgotten = {}}
  lane.runs = 'runs:' .. lane.base .. ':' .. ARGV[a + 2]
  -- Almost always there is no suspect and no parked request, and a single command shows that.
  lane.unusual = redis.call('EXISTS', lane.runs, laneKeyOf('queue', lane.ready)) > 0
  lane.owns = ownedBy(group, consumer, lane.ready, ARGV[a + 3], ARGV[a + 4], 2 * count + 64)
  lanes[i] = lane
end

local requests = {}
for a = first, #ARGV - 8, 8 do requests[#requests + 1] = lanes[tonumber(ARGV[a + 1])].base .. ':' .. ARGV[a + 3] end
local ending = openEndings(load, requests, now, ARGV[4] == '1')

local function commit(lane, entry, request, kind, body, ttl, apart, reason)
  local name = lane.base .. ':' .. request
  local isOpen, hasEnded, brief, keep = ending.look(name)
  local owned = lane.owns(entry)
  if not owned then
    ending.drop(name, apart)
    if hasEnded then return 'already' end
    return 'lost'
  end
  lane.forgotten[#lane.forgotten + 1] = entry
  ending.leave(name)
  if not isOpen then
    ending.drop(name, apart)
    return 'superseded'
  end
  ending.give(name, brief, keep, owned, kind, body, ttl, apart)
  if reason ~= '' then
    setAside('dead:' .. lane.base, ARGV[3], now, 'request', requestIn(name), 'job', jobIn(name), 'sequence', '', 'step', '0',
      'reason', reason,
      'runs', (redis.call('HGET', lane.runs, entry) or '0'):match('^%d+'), 'frame', frameOf(lane.ready, entry))
  end
  return 'committed'
end

local said = {}
for i = 0, count - 1 do
  local a = first + i * 8
  said[i + 1] = commit(lanes[tonumber(ARGV[a + 1])], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6],
    ARGV[a + 7], ARGV[a + 8])
end
ending.close()
for i = 1, #lanes do
  local lane = lanes[i]
  if #lane.forgotten > 0 then
    redis.call('XACK', lane.ready, group, unpack(lane.forgotten))
    redis.call('XDEL', lane.ready, unpack(lane.forgotten))
    if lane.unusual then
      redis.call('HDEL', lane.runs, unpack(lane.forgotten))
      refillIfParking(lane.ready, #lane.forgotten)
    end
  end
end
return said
