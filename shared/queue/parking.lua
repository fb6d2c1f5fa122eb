-- parking.lua: requests that may run, but for which the ready stream of their lane has no room. The
-- ready stream holds what the workers of the lane can take soon, its window, and is first come,
-- first served. What comes when it is full is parked, and whichever script makes room refills it:
-- strictly by rank, and within a rank in shares of the tenants by weight (fair queueing by virtual
-- time). Scripts include this file that queue a request, or take one out of a ready stream.
--   `ready`  key of the lane's ready stream; all other keys are built from it
--   `terms`  how a request waits: '' or `<rank>|<weight>|<delay>`
--            rank    twice its priority level, 2 where the model has no levels; the odd rank behind
--                    it is for what has waited for so long that it goes behind all of its level
--            weight  of its tenant, as the gateway that admits it has it
--            delay   Redis ms after which it goes to that odd rank; 0: never
-- A sequence whose step is parked has PARKED in the field `entry`; of a request without a sequence
-- the outcome hash has its terms in the field `parked`, and no `entry`. That of a step has them in
-- the field `terms`, for when it is given back: a step is not taken out of what is parked when it
-- ends. The keys are
--   queue:<lane>                  sorted set of ranks; it exists while something is parked, and may
--                                 outlast that until the next refill
--   queue:<lane>:<rank>           sorted set of tenants, by the virtual time at which each is next
--   queue:<lane>:<rank>:<tenant>  sorted set of the names of its requests, the next one first
--   parked:<lane>                 hash name -> entry, of all that is parked
--   window:<lane>                 hash: `window`, the two counters of places, and weights by tenant
local PARKED = '@'

local function laneKeyOf(kind, ready) return kind .. ready:sub(6) end

-- The part of a lane's keys that all lanes of its model in the bucket share, `{tag}:model`.
local function baseOf(ready) return ready:match('^ready:({[^}]*}:[^:]*)') end

local function requestOf(facts) return facts:match('^[^|]*') end

-- The hash that says where a request is queued, and whether that is its sequence's.
local function ownerOf(ready, facts)
  local request, sequence = facts:match('^([^|]*)|([^|]*)')
  if sequence ~= '' then return 'seq:' .. baseOf(ready) .. ':' .. sequence, true end
  return 'out:' .. baseOf(ready) .. ':' .. request, false
end

local function isParking(ready) return redis.call('EXISTS', laneKeyOf('queue', ready)) == 1 end

-- Rank, weight and delay.
local function readTerms(terms)
  if not terms or terms == '' then return 2, '1', 0 end
  local rank, weight, delay = terms:match('^(%d+)|([^|]*)|(%d+)')
  return tonumber(rank), weight, tonumber(delay)
end

-- What this call has put into a lane's keys already.
local noted = {}

-- A tenant that comes to a rank is next when those are that wait there: it has saved up nothing.
-- One that has been served there keeps its time, also while it has nothing there.
local function line(queue, rank, tenant)
  local ranked = queue .. ':' .. rank
  local list = ranked .. ':' .. tenant
  if noted[list] then return list end
  noted[list] = true
  redis.call('ZADD', queue, rank, rank)
  if not redis.call('ZSCORE', ranked, tenant) then
    local first = redis.call('ZRANGE', ranked, 0, 0, 'WITHSCORES')
    redis.call('ZADD', ranked, first[2] or 0, tenant)
  end
  return list
end

-- Park a request. Whoever calls this notes PARKED, or its terms.
--   `first`  whether it goes before all others of its tenant and rank: it was handed back
local function park(ready, facts, frame, terms, first)
  local rank, weight = readTerms(terms)
  local name = requestOf(facts)
  local tenant = name:match('^[^:]*')
  local place = redis.call('HINCRBY', laneKeyOf('window', ready), first and 'first' or 'last', first and -1 or 1)
  redis.call('ZADD', line(laneKeyOf('queue', ready), rank, tenant), place, name)
  redis.call('HSET', laneKeyOf('parked', ready), name, cmsgpack.pack({facts, frame, terms or ''}))
  -- The last gateway to park a tenant's request says its weight.
  if terms and terms ~= '' then redis.call('HSET', laneKeyOf('window', ready), 'of ' .. tenant, weight) end
end

-- Move a parked request to ready. One that has ended meanwhile, or that nobody knows any more, is
-- dropped: who ended it did not know that it was parked.
local function toReady(ready, facts, frame)
  local owner, isStep = ownerOf(ready, facts)
  if not isStep then
    local known = redis.call('HMGET', owner, 'digest', 'kind')
    if not known[1] or known[2] then return false end
  else
    -- Somebody may have deleted the sequence, and its next START is parked, too.
    local seq = redis.call('HMGET', owner, 'entry', 'request')
    if seq[1] ~= PARKED or seq[2] ~= requestOf(facts) then return false end
  end
  redis.call('HSET', owner, 'entry', redis.call('XADD', ready, '*', 'm', facts, 'b', frame))
  return true
end

-- Serve the tenant that is next in a rank, until the one behind it is.
-- Returns how many requests went to ready.
local function serve(ready, rank, turn, most, now)
  local queue, parked = laneKeyOf('queue', ready), laneKeyOf('parked', ready)
  local ranked = queue .. ':' .. rank
  local tenant, at, behind = turn[1], tonumber(turn[2]), tonumber(turn[4])
  local weight = tonumber(redis.call('HGET', laneKeyOf('window', ready), 'of ' .. tenant) or '1')
  local count = most
  if behind then count = math.min(most, math.floor((behind - at) * weight) + 1) end
  local popped = redis.call('ZPOPMIN', ranked .. ':' .. tenant, count)
  if #popped == 0 then
    redis.call('ZREM', ranked, tenant)
    return 0
  end
  local names, served = {}, 0
  for i = 1, #popped, 2 do names[#names + 1] = popped[i] end
  local bodies = redis.call('HMGET', parked, unpack(names))
  redis.call('HDEL', parked, unpack(names))
  for i = 1, #names do
    local entry = bodies[i] and cmsgpack.unpack(bodies[i])
    local _, _, delay = readTerms(entry and entry[3])
    if entry and delay > 0 and delay <= now and rank % 2 == 0 then
      redis.call('ZADD', line(queue, rank + 1, tenant), popped[2 * i], names[i])
      redis.call('HSET', parked, names[i], bodies[i])
    elseif entry and toReady(ready, entry[1], entry[2]) then
      served = served + 1
    end
  end
  -- A call that parks again later must not believe that this is still there.
  noted = {}
  redis.call('ZADD', ranked, at + served / weight, tenant)
  return served
end

-- Most requests that one turn takes out: Lua unpacks no list without end.
local TURN = 1000

-- Move up to so many parked requests to ready.
-- Returns how many.
local function unpark(ready, most)
  local queue = laneKeyOf('queue', ready)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local moved = 0
  while moved < most do
    local rank = tonumber(redis.call('ZRANGE', queue, 0, 0)[1])
    if not rank then
      redis.call('DEL', laneKeyOf('window', ready))
      break
    end
    local turn = redis.call('ZRANGE', queue .. ':' .. rank, 0, 1, 'WITHSCORES')
    if turn[1] then
      moved = moved + serve(ready, rank, turn, math.min(most - moved, TURN), now)
    else
      redis.call('ZREM', queue, rank)
    end
  end
  return moved
end

-- Refill a lane in which something is parked, when so many entries have left its ready stream.
-- Where the window has shrunk, half of them are replaced: so what is parked goes on whatever the
-- window is, and the ready stream comes down to it.
local function refill(ready, left)
  local window = tonumber(redis.call('HGET', laneKeyOf('window', ready), 'window') or '1')
  return unpark(ready, math.max(window - redis.call('XLEN', ready), math.ceil(left / 2)))
end

-- Where something is parked, refill. Scripts that run rarely look here.
local function refillIfParking(ready, left)
  if left > 0 and isParking(ready) then refill(ready, left) end
end

-- Queue an entry that a worker gives back, or that nobody would deliver again. Where requests are
-- parked it goes before all others of its tenant and rank.
--   `owner`   the hash whose field `entry` holds its id   `fields`  those of the entry
local function queueAgain(ready, owner, fields)
  local isKnown = redis.call('HEXISTS', owner, 'entry') == 1
  if not isKnown or fields[1] ~= 'm' or not isParking(ready) then
    local fresh = redis.call('XADD', ready, '*', unpack(fields))
    if isKnown then redis.call('HSET', owner, 'entry', fresh) end
    return
  end
  local terms
  if owner:find('^seq:') then
    local out = 'out:' .. baseOf(ready) .. ':' .. requestOf(fields[2])
    terms = redis.call('HGET', out, 'terms') or ''
    redis.call('HSET', owner, 'entry', PARKED)
  else
    terms = redis.call('HGET', owner, 'parked') or ''
    redis.call('HDEL', owner, 'entry')
    redis.call('HSET', owner, 'parked', terms)
  end
  park(ready, fields[2], fields[4], terms, true)
end

-- Take a request without a sequence out of what is parked. What it costs does not go by how much
-- that is.
--   `out`    its outcome hash, and of its fields:
--   `pin`    the lane that it is queued in   `terms`  the field `parked`
-- Returns whether it was parked.
local function withdrawParked(out, pin, terms)
  local base, name = out:match('^out:({[^}]*}:[^:]*):(.*)$')
  local ready = 'ready:' .. base .. ':' .. pin
  if redis.call('HDEL', laneKeyOf('parked', ready), name) == 0 then return false end
  local rank = readTerms(terms)
  local tenant = name:match('^[^:]*')
  for one = rank, rank + 1 do
    redis.call('ZREM', laneKeyOf('queue', ready) .. ':' .. one .. ':' .. tenant, name)
  end
  return true
end
