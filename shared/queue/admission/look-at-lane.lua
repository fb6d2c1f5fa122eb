#!lua flags=no-writes,allow-oom
-- look-at-lane.lua: count what a lane holds, and find how long its oldest request has waited. Takes
-- four commands, and looks into no more than a few requests. If the model has priority levels and
-- requests are parked, at most two commands more for each rank, and 64 for tenants.
--   KEYS.ready   stream
--   KEYS.parked  hash
--   KEYS.queue   zset of ranks; parking.lua has the keys below it
--   ARGV.group
--   ARGV.levels  of the model; '0' for none
--   Returns {waiting entries, entries that workers have, parked requests, since when or '', parked
--            requests by level}
--     since when: Redis ms of the admission of the oldest request that waits. Without a waiting
--                 entry, that of the oldest of some parked requests
--     by level:   of the first levels, from level 1 on; empty if the model has no levels or nothing
--                 is parked
local PARKED_LOOK, MOST_LEVELS, MOST_TENANTS = 8, 16, 64

-- Returns nil for a request of a gateway that does not say how long it may wait.
local function admittedAt(facts, frame)
  local deadline = facts and facts:match(PATTERN.entry(deadline))
  local wait = deadline and frame and frame:sub(1, 4096):match('"wait":(%d+)')
  return wait and tonumber(deadline) - tonumber(wait)
end

-- A level has two ranks (records/requests.ts). If a rank has more tenants than are looked at, these
-- stand for all.
local function parkedByLevel(levels)
  local counts, left = {}, MOST_TENANTS
  for level = 1, math.min(levels, MOST_LEVELS) do counts[level] = 0 end
  local ranks = levels > 0 and redis.pcall('ZRANGE', KEYS.queue, 0, 2 * MOST_LEVELS) or {}
  for i, rank in ipairs(ranks.err and {} or ranks) do
    local level, ranked, parked = math.floor(tonumber(rank) / 2), KEYS.queue .. ':' .. rank, 0
    local share = math.max(1, math.floor(left / (#ranks - i + 1)))
    local tenants = redis.pcall('ZRANGE', ranked, 0, share - 1)
    if counts[level] and not tenants.err and #tenants > 0 then
      for _, tenant in ipairs(tenants) do parked = parked + redis.call('ZCARD', ranked .. ':' .. tenant) end
      local all = #tenants < share and #tenants or redis.call('ZCARD', ranked)
      counts[level] = counts[level] + math.floor(parked * all / #tenants + 0.5)
      left = left - #tenants
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
