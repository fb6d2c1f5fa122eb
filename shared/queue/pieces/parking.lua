-- parking.lua: requests that may run, but find no room in the ready stream of their lane. The ready
-- stream holds as much as the lane's workers can take soon, its window, and is first come, first
-- served. A request that finds the stream full is parked, and each script that makes room refills
-- the stream. A refill goes strictly by rank, and within a rank in shares of the tenants by weight
-- (fair queueing by virtual time). A request costs its tenant one over the tenant's weight of
-- virtual time. A generation costs as many times that as it has tokens, of prompt and answer: until
-- its end as many as the last generations of its tenant had, then as many as it had. Every script
-- that queues a request, or takes a request out of a ready stream, includes this file, and sets
-- `local load`, the key of the counts (load.lua), before that.
--   `ready`  key of the lane's ready stream; all other keys follow from it
--   `terms`  how a request waits (records/requests.ts); '' for the usual terms
-- A sequence with a parked step has PARKED as `entry`, and so has a parked brief request without a
-- sequence. The record of any other parked request without a sequence has the terms in the field
-- `parked`, and no `entry`. A step has the terms in the field `terms`, because a worker may give
-- the step back. A step that ends while parked stays among the parked requests. The keys are
--   queue:<lane>                  sorted set of ranks; exists while the lane has parked requests,
--                                 and may last until the next refill after that
--   queue:<lane>:<rank>           sorted set of tenants, by the virtual time at which each is next
--   queue:<lane>:<rank>:<tenant>  sorted set of the names of the tenant's requests, the next
--                                 request first
--   parked:<lane>                 hash name -> entry, of all parked requests
--   window:<lane>                 hash: `window`, the two counters of places, and the weights of
--                                 tenants (`of`). By rank and tenant, the cost of the last requests
--                                 (`cost`), and how many requests have that cost until their end
--                                 (`open`). In a lane of generations also `cost`, that of all
-- include sequence.lua
-- include load.lua
-- include time.lua
local PARKED = '@'

-- The ready stream of a request's lane; `out` is the key of the request's record.
local function readyOf(out, pin) return 'ready:' .. out:match('^out:({[^}]*}:[^:]*)') .. ':' .. pin end

local function laneKeyOf(kind, ready) return kind .. ready:sub(6) end

-- The part of a lane's keys that all lanes of the model in the bucket share, `{tag}:model`.
local function baseOf(ready) return ready:match('^ready:({[^}]*}:[^:]*)') end

local function requestOf(facts) return facts:match(PATTERN.entry(request)) end

local function namesOf(facts) return facts:match(PATTERN.entry(request, sequence)) end

local function isParking(ready) return redis.call('EXISTS', laneKeyOf('queue', ready)) == 1 end

-- Returns rank, weight and delay.
local function readTerms(terms)
  if not terms or terms == '' then return 2, '1', 0 end
  local rank, weight, delay = terms:match(PATTERN.terms(rank, weight, delay))
  return tonumber(rank), weight, tonumber(delay)
end

-- The lists for which this call has written the rank and the tenant already.
local noted = {}

-- Returns the list of a tenant's requests in a rank. A tenant that is new there gets the virtual
-- time of the next tenant, because time without requests earns no larger share. A tenant that was
-- served there keeps the old time, also without requests there.
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

-- Park a request. The caller notes PARKED or the terms, as described above.
--   `how`  'new' for a new request, whose terms give the tenant's weight from now on; 'next' for a
--          step after the end of the step before; 'again' for a request that a worker gives back,
--          which goes first in its tenant and rank
local function park(ready, facts, frame, terms, how)
  local rank, weight = readTerms(terms)
  local name = requestOf(facts)
  local tenant, first = name:match('^[^:]*'), how == 'again'
  local place = redis.call('HINCRBY', laneKeyOf('window', ready), first and 'first' or 'last', first and -1 or 1)
  redis.call('ZADD', line(laneKeyOf('queue', ready), rank, tenant), place, name)
  redis.call('HSET', laneKeyOf('parked', ready), name,
    cmsgpack.pack(LIST.parked{facts = facts, frame = frame, terms = terms or ''}))
  -- The last gateway that parks a tenant's request sets the tenant's weight. An earlier request has
  -- an older weight, which counts only if there is none.
  if terms and terms ~= '' then
    redis.call(how == 'new' and 'HSET' or 'HSETNX', laneKeyOf('window', ready), 'of ' .. tenant, weight)
  end
end

-- Move a parked request to ready. Drops a request that has ended or has no record any more: the
-- script that ended the request did not know that it was parked.
local function toReady(ready, facts, frame)
  local base = baseOf(ready)
  local request, sequence = namesOf(facts)
  local name = base .. ':' .. request
  if sequence ~= '' then
    -- A client may have deleted the sequence, and a new START may be parked, too.
    local seq = readableSequence(base, sequence)
    if not seq or seq.entry ~= PARKED or seq.request ~= request then return false end
    seq.entry = redis.call('XADD', ready, '*', 'm', facts, 'b', frame)
    noteSequence(base, sequence, seq)
    return true
  end
  local brief = readBrief(load, name)
  if brief then
    brief.entry = redis.call('XADD', ready, '*', 'm', facts, 'b', frame)
    writeBrief(load, name, brief)
    return true
  end
  local known = redis.pcall('HMGET', 'out:' .. name, 'digest', 'kind')
  if known.err or not known[1] or known[2] then return false end
  redis.call('HSET', 'out:' .. name, 'entry', redis.call('XADD', ready, '*', 'm', facts, 'b', frame))
  return true
end

-- Returns the share of a tenant in a rank: `weight`, `cost` and `open`; the lane's `window`; and
-- `mean`, the cost of all tenants' generations, or false.
local function shareOf(ready, rank, tenant)
  local of = ' ' .. rank .. ' ' .. tenant
  local found = redis.call('HMGET', laneKeyOf('window', ready), 'of ' .. tenant, 'cost' .. of, 'open' .. of, 'cost',
    'window')
  local mean = found[4] and tonumber(found[4])
  return {weight = tonumber(found[1] or '1'), cost = tonumber(found[2] or mean or '1'), open = tonumber(found[3] or '0'),
    mean = mean, window = tonumber(found[5] or '1')}
end

local function noteShare(ready, rank, tenant, cost, open, mean)
  local window, of = laneKeyOf('window', ready), ' ' .. rank .. ' ' .. tenant
  redis.call('HSET', window, 'cost' .. of, cost, 'open' .. of, open)
  if mean then redis.call('HSET', window, 'cost', mean) end
end

-- Serve the next tenant of a rank, until the tenant behind it is next.
-- Returns how many requests went to ready.
local function serve(ready, rank, turn, most, now)
  local queue, parked = laneKeyOf('queue', ready), laneKeyOf('parked', ready)
  local ranked = queue .. ':' .. rank
  local tenant, at, behind = turn[1], tonumber(turn[2]), tonumber(turn[4])
  local own = shareOf(ready, rank, tenant)
  local weight, cost = own.weight, math.max(1, own.cost)
  local count = most
  if behind then count = math.min(most, math.floor((behind - at) * weight / cost) + 1) end
  local popped = redis.call('ZPOPMIN', ranked .. ':' .. tenant, count)
  if #popped == 0 then
    redis.call('ZREM', ranked, tenant)
    return 0
  end
  local names, served = {}, 0
  for i = 1, #popped, 2 do names[#names + 1] = popped[i] end
  local bodies = redis.call('HMGET', parked, unpack(names))
  redis.call('HDEL', parked, unpack(names))
  local entries, sequences = {}, {}
  for i = 1, #names do
    -- Drops a value that a person made unreadable by hand.
    local whole, entry = pcall(cmsgpack.unpack, bodies[i] or '')
    entries[i] = whole and type(entry) == 'table' and entry or nil
    local sequence = entries[i] and LIST.parked(entries[i]).facts:match(PATTERN.entry(sequence)) or ''
    if sequence ~= '' then sequences[#sequences + 1] = sequence end
  end
  lookUpSequences(baseOf(ready), sequences)
  for i = 1, #names do
    local entry = entries[i]
    local _, _, delay = readTerms(entry and LIST.parked(entry).terms)
    if entry and delay > 0 and delay <= now and rank % 2 == 0 then
      redis.call('ZADD', line(queue, rank + 1, tenant), popped[2 * i], names[i])
      redis.call('HSET', parked, names[i], bodies[i])
    elseif entry and toReady(ready, LIST.parked(entry).facts, LIST.parked(entry).frame) then
      served = served + 1
    end
  end
  -- A call that parks again later must not believe that these keys still exist.
  noted = {}
  redis.call('ZADD', ranked, at + served * cost / weight, tenant)
  noteShare(ready, rank, tenant, cost, own.open + served)
  return served
end

-- Most requests that one turn takes out, because Lua's unpack takes a limited number of values.
local TURN = 1000

-- Move up to `most` parked requests to ready.
-- Returns how many.
local function unpark(ready, most)
  local queue = laneKeyOf('queue', ready)
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
  writeSequences()
  return moved
end

-- A cost moves towards the newest generation's by this part of the difference.
local NEWEST = 1 / 8

-- Charge a generation that leaves a lane with parked requests for its tokens, in place of the cost
-- that it had until now; and the generations that are still open for their new cost. A tenant
-- without parked requests owes nothing.
--   `name`  as in `open` (load.lua)   `used`  its tokens; 0 for a request that no worker has run
local function noteUsed(ready, name, used)
  local tenant, noted = name:match('^[^:]*:[^:]*:([^:]*)'), redis.pcall('HMGET', 'out:' .. name, 'parked', 'terms')
  local rank = readTerms(noted[1] or noted[2])
  local own = shareOf(ready, rank, tenant)
  if used == 0 and not own.mean then return end
  local mean = own.mean or used
  local cost = own.mean and own.cost + NEWEST * (used - own.cost) or used
  -- Requests that come and go in other ways than by a refill and a commit may not add up for ever.
  local open = math.max(-own.window, math.min(own.open, own.window)) - 1
  noteShare(ready, rank, tenant, cost, open, mean + NEWEST * (used - mean))
  local more = used - own.cost + open * (cost - own.cost)
  redis.call('ZADD', laneKeyOf('queue', ready) .. ':' .. rank, 'XX', 'INCR', more / own.weight, tenant)
end

-- Refill a lane with parked requests after `left` entries have left the ready stream. If the window
-- has shrunk, the refill replaces half of these entries. So parked requests always move, and the
-- ready stream shrinks to the window.
local function refill(ready, left)
  local window = tonumber(redis.call('HGET', laneKeyOf('window', ready), 'window') or '1')
  return unpark(ready, math.max(window - redis.call('XLEN', ready), math.ceil(left / 2)))
end

-- Refill a lane if the lane has parked requests, for scripts that run rarely.
local function refillIfParking(ready, left)
  if left > 0 and isParking(ready) then refill(ready, left) end
end

-- Finds the note of an entry's id: in the facts of the sequence, or else in the record of the
-- request.
-- Returns a function that notes another id, or nil if no record has this id; and the terms.
local function noteOf(ready, entry, facts)
  local base = baseOf(ready)
  local request, sequence = namesOf(facts)
  local name = base .. ':' .. request
  local brief, out = readBrief(load, name), 'out:' .. name
  if sequence ~= '' then
    local seq = sequenceOf(base, sequence)
    if not seq or seq.entry ~= entry or seq.on ~= ready:sub(#base + 8) then return nil end
    local terms = brief and brief.terms
    if not brief then
      local found = redis.pcall('HMGET', out, 'terms')
      terms = not found.err and found[1] or ''
    end
    return function(id)
      seq.entry = id
      noteSequence(base, sequence, seq)
      writeSequences()
    end, terms
  end
  if brief then
    return function(id)
      brief.entry = id
      writeBrief(load, name, brief)
    end, brief.terms
  end
  local found = redis.pcall('HMGET', out, 'entry', 'parked')
  if found.err or not found[1] then return nil end
  return function(id)
    if id ~= PARKED then return redis.call('HSET', out, 'entry', id) end
    redis.call('HDEL', out, 'entry')
    redis.call('HSET', out, 'parked', found[2] or '')
  end, found[2] or ''
end

-- Queue again an entry that a worker gives back, or that no worker would get again. If the lane has
-- parked requests, the entry goes first in its tenant and rank.
--   `entry`  the id, which is gone from the stream   `fields`  of the entry
local function queueAgain(ready, entry, fields)
  local note, terms
  if fields[1] == 'm' then note, terms = noteOf(ready, entry, fields[2]) end
  if not note or not isParking(ready) then
    local fresh = redis.call('XADD', ready, '*', unpack(fields))
    if note then note(fresh) end
    return
  end
  note(PARKED)
  park(ready, fields[2], fields[4], terms, 'again')
end

-- Take a request without a sequence out of the parked requests. The cost does not depend on their
-- number.
--   `out`    key of the record   `pin`  of the lane   `terms`  of the request
-- Returns whether the request was parked.
local function withdrawParked(out, pin, terms)
  local ready, name = readyOf(out, pin), out:match('^out:{[^}]*}:[^:]*:(.*)$')
  if redis.call('HDEL', laneKeyOf('parked', ready), name) == 0 then return false end
  local rank = readTerms(terms)
  local tenant = name:match('^[^:]*')
  for one = rank, rank + 1 do
    redis.call('ZREM', laneKeyOf('queue', ready) .. ':' .. one .. ':' .. tenant, name)
  end
  return true
end
