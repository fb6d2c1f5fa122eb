#!lua flags=no-writes,allow-oom
-- look-at-lane.lua: count what a lane holds, and find how long its oldest request has waited. Takes
-- four commands, and looks into no more than a few requests. If the model has priority levels and
-- requests are parked, one command more for each rank, and for each of some tenants in a rank.
--   KEYS.ready   stream
--   KEYS.parked  hash
--   KEYS.queue   zset of ranks; parking.lua has the keys below it
--   ARGV.group
--   ARGV.levels  of the model; '0' for none
--   Returns {waiting entries, entries that workers have, parked requests, since when or '', parked
--            requests by level}
--     since when: Redis ms of the admission of the oldest request that waits. Without a waiting
--                 entry, that of the oldest of some parked requests
--     by level:   of the first levels, and of the first tenants of each; a list from level 1 on,
--                 empty if the model has no levels or nothing is parked
local PARKED_LOOK, MOST_LEVELS, MOST_TENANTS = 8, 16, 256

-- Returns nil for a request of a gateway that does not say how long it may wait.
local function admittedAt(facts, frame)
  local deadline = facts and facts:match(PATTERN.entry(deadline))
  local wait = deadline and frame and frame:sub(1, 4096):match('"wait":(%d+)')
  return wait and tonumber(deadline) - tonumber(wait)
end

-- A level has two ranks (records/requests.ts).
local function parkedByLevel(levels)
  local counts = {}
  for level = 1, math.min(levels, MOST_LEVELS) do
    counts[level] = 0
    for rank = 2 * level, 2 * level + 1 do
      local ranked = KEYS.queue .. ':' .. rank
      local tenants = redis.pcall('ZRANGE', ranked, 0, MOST_TENANTS - 1)
      for _, tenant in ipairs(tenants.err and {} or tenants) do
        counts[level] = counts[level] + redis.call('ZCARD', ranked .. ':' .. tenant)
      end
    end
  end
  return counts
end

local length, parked = redis.call('XLEN', KEYS.ready), redis.call('HLEN', KEYS.parked)
if length + parked == 0 then return {0, 0, 0, '', {}} end
local running, last = 0, '0-0'
local groups = redis.pcall('XINFO', 'GROUPS', KEYS.ready)
for _, group in ipairs(groups.err and {} or groups) do
  local facts = {}
  for i = 1, #group, 2 do facts[group[i]] = group[i + 1] end
  if facts.name == ARGV.group then running, last = facts.pending, facts['last-delivered-id'] end
end
local waiting, since = math.max(0, length - running), nil
if waiting > 0 then
  local entry = redis.call('XRANGE', KEYS.ready, '(' .. last, '+', 'COUNT', 1)[1]
  if entry then since = admittedAt(entry[2][2], entry[2][4]) or tonumber(entry[1]:match('^%d+')) end
elseif parked > 0 then
  local some = redis.call('HRANDFIELD', KEYS.parked, PARKED_LOOK, 'WITHVALUES')
  for i = 2, #some, 2 do
    local isPacked, packed = pcall(cmsgpack.unpack, some[i])
    local at = isPacked and type(packed) == 'table' and admittedAt(LIST.parked(packed).facts, LIST.parked(packed).frame)
    if at and (not since or at < since) then since = at end
  end
end
local levels = parked > 0 and parkedByLevel(tonumber(ARGV.levels)) or {}
return {waiting, running, parked, since and string.format('%d', since) or '', levels}
