#!lua
-- admit.lua: number each request's step and queue it, unless the request is known, refused, or too
-- much. Each request of a call gets an answer of its own, and a call takes effect once. Redis does
-- not begin it while it refuses writes.
--   KEYS     the ready stream of each lane of the call. The other keys are built here from the tag
--            of the lane's bucket, so in a cluster all lanes of a call are of one bucket. Then:
--            what is counted (load.lua); and the record of the gateway's last call. Both are one
--            for all buckets, and in a cluster one for each, in the slot of that bucket
--   ARGV[1] gateway   ARGV[2] limits (limits.lua)   ARGV[3] waiting limit
--   ARGV[4] tags of the buckets whose live sequences are counted together, with spaces between
--   then three per lane:
--           tag of the bucket and model, `{tag}:model`
--           pin: `version:digest` of the model that the lane's requests are for
--           window: entries in the ready stream past which requests are parked
--   then twelve per request:
--           number of the lane, from 1
--           name of the request (`requestName` in address.ts)
--           frame
--           digest of what was asked, where it has an Idempotency-Key; else '', and its id is new
--           outcome TTL ms
--           deadline, ms from now
--           ms for which somebody surely wants the stream (see attend.lua); 0: it runs on whether
--             or not anybody reads it; '' where it is no stream and its client waits for it, so
--             that it may be brief (load.lua)
--           name of the sequence (`tenant:id`); '' for none
--           START 1 + END 2; or 4 + END 2: it begins its sequence where there is none, and is
--             queued with START then, else without
--           number that the step should have, counted from the sequence's START, which is 1; ''
--             where the client does not say
--           how it waits where it is parked, as parking.lua has it, with the delay in ms from now;
--             '' for the usual
--           most requests of its priority level that may be parked; 0: no limit
--   then per job (job.lua):
--           number of its request in this call, from 1
--           name of the job; '' for a new one, which is named after its request
--           its stage (stageOf in job.lua): the request that it has had last, which is over, and
--             when it is due, with '|' between; '' for a new one
--           ms for which its result is kept
--           how many arguments follow: fields of its record and their values; 0 unless it is new
--   then    how many arguments say this of jobs
--   then    number of the call, from 1
--           number of the last call of this record that Redis is known to have done; 0: none
--           ms for which the record is kept
--   A gateway has one call under way for each record, and numbers them. Any copy of a call may
--   arrive, in any order, and long after its answer: a link can stall, and deliver what it held
--   once the gateway has long gone on over another one. So the record holds the number of the last
--   call, and what its requests were told: a copy of the last call is answered from there, and an
--   earlier call is refused. A call whose end the gateway does not know is made harmless by the
--   next number, whether or not it was done. Every call is noted, also one that only refused: a
--   copy of it might find room. The record costs a GET and a SET for each call. It is kept for an
--   hour after the last one; a gateway that has nothing to admit sends a call without requests in
--   time. A call without its record, from a gateway that knows of one, is not run: either it comes
--   late, or Redis has lost calls that it had acknowledged.
--   Returns {'answered', answers, loads}
--                                    done now or before, with one answer per request; and what is
--                                    counted now of the models and tenants of the call, as a list
--                                    of field, requests, bytes, and as `s:<model>`, live sequences,
--                                    0; empty where the call was done before
--           {'late'}                 a later call was done; nothing is written
--           {'gone-back', last}      Redis knows of no call later than `last`, which is before the
--                                    one that it is known to have done; nothing is written
--           The answers are
--           'admitted'               queued now
--           {'known', kind, body, pin}
--                                    admitted before under its Idempotency-Key, under that pin;
--                                    kind is '' while it has no outcome
--           {'pinned', pin}          a step without START whose sequence is pinned to another
--                                    version, or to other files; nothing is written
--           'held-back'              another step of its sequence, before it in this call, was
--                                    answered 'pinned', or found no room, and may come again;
--                                    nothing is written
--           {'ahead', number} {'behind', number}
--                                    the next step of its sequence has this number, which is less
--                                    or more than the one that it should have; nothing is written
--           'mismatch'               its Idempotency-Key was used for something else
--           {'start-required', why}  there is no such sequence, or it is over (past.lua); nothing
--                                    is written
--           'backlog-full' 'too-many-sequences'
--                                    refused; nothing is written
--           {'queue-full', limit}    refused, by the name of a limit (limits.lua); nothing is
--                                    written
--           'job-changed'            its job is at another stage by now; nothing is written
--           'forgotten'              it was known, but its record has expired since the first copy
--                                    of this call
--           {'failed', why}          an error in the middle, as where somebody has changed a key of
--                                    its sequence by hand: whether it is queued is not known
local load = KEYS[#KEYS - 1]
-- include ../version.lua
-- include ../parking.lua
-- include ../past.lua
-- include ../job.lua
-- include ../events.lua
-- include limits.lua
local gateway, waitLimit = ARGV[1], tonumber(ARGV[3])
local calls, laneCount = KEYS[#KEYS], #KEYS - 2
local number, acknowledged, recordMs = tonumber(ARGV[#ARGV - 2]), tonumber(ARGV[#ARGV - 1]), ARGV[#ARGV]
-- The last argument of the last request.
local requestsEnd = #ARGV - 4 - tonumber(ARGV[#ARGV - 3])
-- include ../time.lua
local at = string.format('%.0f', now)

local lanes = {}
for i = 1, laneCount do
  local base = ARGV[2 + 3 * i]
  lanes[i] = {
    ready = KEYS[i],
    base = base,
    pin = ARGV[3 + 3 * i],
    window = tonumber(ARGV[4 + 3 * i]),
    -- An error here is met again by each request of the lane, and by no other.
    length = redis.pcall('XLEN', KEYS[i]),
    busy = {},
  }
end

-- How many requests of a priority level are parked in a lane, those with a delay behind them
-- included.
local function parkedOf(lane, rank)
  local count, queue = 0, laneKeyOf('queue', lane.ready)
  for one = rank, rank + 1 do
    for _, tenant in ipairs(redis.call('ZRANGE', queue .. ':' .. one, 0, -1)) do
      count = count + redis.call('ZCARD', queue .. ':' .. one .. ':' .. tenant)
    end
  end
  return count
end

-- Queue a request that may run now. Nothing is parked while there is room, since whatever makes
-- room refills it.
-- Returns its entry in ready, or PARKED where there is no room.
local function queueUp(lane, facts, frame, terms)
  if lane.length < lane.window then
    local entry = redis.call('XADD', lane.ready, '*', 'm', facts, 'b', frame)
    lane.length = lane.length + 1
    return entry
  end
  park(lane.ready, facts, frame, terms, 'new')
  if not lane.isNoted then
    redis.call('HSET', laneKeyOf('window', lane.ready), 'window', lane.window)
    lane.isNoted = true
  end
  return PARKED
end

local ledger

-- The flags of an entry, by START 1 + END 2, where its request is brief.
local BRIEF_FLAGS = {['0'] = '4', ['1'] = '5', ['2'] = '6', ['3'] = '7'}

local function isBriefOne(attended, digest, ttl)
  return attended == '' and digest == '' and tonumber(ttl) < ledger.limits.keep
end

-- What is known of a brief request, for the field that it is counted in.
local function briefOf(pin, deadline, entry, terms)
  return {at = at, keptUntil = string.format('%.0f', now + deadline + DAY), pin = pin, gateway = gateway, ended = '0',
    entry = entry or '', terms = terms}
end

-- Write the record of any other new request. It is kept for a day past the deadline even if every
-- process dies: a stream's deadline is that of its first token, and its log lives as long as this
-- hash. The commit sets the TTL that counts.
local function record(out, pin, digest, ttl, deadline, attended, entry, terms, job)
  local fields = {'digest', digest, 'at', at, 'ttl', ttl, 'pin', pin, 'by', gateway}
  if attended > 0 then
    fields[11], fields[12] = 'wanted', string.format('%.0f', now + attended)
  end
  if entry and entry ~= PARKED then
    fields[#fields + 1] = 'entry'
    fields[#fields + 1] = entry
  end
  if entry == PARKED or entry and terms ~= '' then
    fields[#fields + 1] = 'parked'
    fields[#fields + 1] = terms
  elseif not entry and terms ~= '' then
    fields[#fields + 1] = 'terms'
    fields[#fields + 1] = terms
  end
  if job or tonumber(ttl) >= ledger.limits.keep then
    fields[#fields + 1] = 'keep'
    fields[#fields + 1] = job and job.keep or ledger.limits.keep
  end
  if job then
    fields[#fields + 1] = 'job'
    fields[#fields + 1] = job.name
  end
  redis.call('HSET', out, unpack(fields))
  redis.call('PEXPIRE', out, tonumber(ttl) + deadline + DAY)
end

-- The answer to a request that was admitted before under its Idempotency-Key, or nil. Without a key
-- no request comes again under its id but in a copy of its call.
local function known(lane, request, digest, attended, job)
  if digest == '' then return nil end
  local out = 'out:' .. lane.base .. ':' .. request
  local found = redis.call('HMGET', out, 'digest', 'kind', 'body', 'pin')
  if not found[1] then
    -- A job may be there without its first request: before it, or long behind it.
    local asked = job and redis.call('HGET', jobKey(lane.base, request), 'digest')
    if not asked then return nil end
    return asked == digest and {'known', '', '', ''} or 'mismatch'
  end
  if found[1] ~= digest then return 'mismatch' end
  -- An earlier try may have been a stream that ran for its readers; this one wants the whole
  -- answer.
  if not found[2] and (tonumber(attended) or 0) == 0 then redis.call('HDEL', out, 'wanted') end
  return {'known', found[2] or '', found[3] or '', found[4] or ''}
end

-- Sequences of which a step of this call was answered 'pinned', or found no room and may come
-- again, with that answer: no later one may overtake it.
local moved = {}

-- The number of the next step of a sequence, counted from its START.
local function numberOf(seq) return seq.next + 2 - seq.start end

-- Note that a request runs a job. Its record lives as long as that of the request; so does that of
-- its first request, by which a retry under its key finds it.
local function noteJob(lane, request, job, ttl, left, due, sequence, step, digest)
  if not job then return end
  local life = tonumber(ttl) + left + DAY
  if job.again then
    redis.call('PEXPIRE', 'out:' .. lane.base .. ':' .. job.name, life)
    dropLater(load, lane.base, job.name, job.bytes)
    redis.call('HDEL', jobKey(lane.base, job.name), 'ended', 'failure')
  elseif digest ~= '' then
    redis.call('HSET', jobKey(lane.base, job.name), 'digest', digest)
  end
  writeJob(lane.base, job.name, job.fields, request, at, due, life, sequence, step)
end

-- Whether somebody wants to be told when the job's request begins. The entry says so (entry.ts), so
-- that a worker need not ask for others.
local function tellsBegin(base, job)
  local tell = job.tell
  if job.again then tell = redis.call('HGET', jobKey(base, job.name), 'tell') end
  return wantsJobEvent(base, job.name, 'job.started', tell)
end

-- The terms with the time after which the request goes behind all others of its level.
local function termsAt(terms)
  if terms == '' then return terms end
  local ranked, delay = terms:match('^(.*|)(%d+)$')
  if not delay or delay == '0' then return terms end
  return ranked .. string.format('%.0f', now + tonumber(delay))
end

local function admit(lane, request, frame, digest, ttl, deadline, attended, name, flags, expected, terms, most, job)
  local before = known(lane, request, digest, attended, job)
  if before then return before end
  if job and job.again then
    if stageOf(jobKey(lane.base, job.name)) ~= job.was then return 'job-changed' end
    job.bytes = redis.call('HSTRLEN', jobKey(lane.base, job.name), 'body')
  elseif job then
    job.name = request
  end
  local isBrief = isBriefOne(attended, digest, ttl)
  attended = tonumber(attended) or 0
  local isStep = name ~= ''
  local start = flags == '1' or flags == '3'
  local tenant = request:match('^[^:]*')
  local bytes = #frame + (job and job.bytes or 0)
  local full = ledger.refuses(lane.model, tenant, bytes, job)
  local sequence, seq, running, lapsed
  if isStep then
    sequence = lane.base .. ':' .. name
    seq = sequenceOf(lane.base, name)
    running = seq and isBusy(seq)
    lapsed = seq and hasLapsed(seq, now)
    local isNone = not seq or lapsed or seq.ended ~= '0'
    if tonumber(flags) >= 4 then
      start = isNone
      flags = string.format('%.0f', flags - (start and 3 or 4))
    end
    if not start then
      -- What has to come again may be the START that begins its sequence anew.
      if isNone and moved[sequence] then return 'held-back' end
      if not seq then return {'start-required', whyPast(lane.base, name, now)} end
      if lapsed then return {'start-required', WHYS[EXPIRED]} end
      if seq.ended ~= '0' then return {'start-required', WHYS[seq.ended]} end
      if seq.pin ~= lane.pin then
        moved[sequence] = 'pinned'
        return {'pinned', seq.pin}
      end
    end
    -- What finds no room by itself need not come again to hear it.
    if moved[sequence] then
      if full then return {'queue-full', full} end
      if start and moved[sequence] == 'too-many-sequences' then return moved[sequence] end
      return 'held-back'
    end
    -- Those before it in this call have their numbers by now.
    local number = expected ~= '' and (start and 1 or numberOf(seq))
    if number and tonumber(expected) ~= number then
      return {tonumber(expected) > number and 'ahead' or 'behind', number}
    end
  end
  if type(lane.length) == 'table' then error(lane.length) end
  local counted = lane.base .. ':' .. request
  if full then
    if isStep and ledger.limits.again then moved[sequence] = 'queue-full' end
    return {'queue-full', full}
  end
  if most ~= '0' and lane.length >= lane.window and parkedOf(lane, (readTerms(terms))) >= tonumber(most) then
    return {'queue-full', 'level'}
  end
  terms = termsAt(terms)
  if isStep then
    if running and redis.call('LLEN', 'wait:' .. sequence) >= waitLimit then return 'backlog-full' end
    if not seq and not ledger.begins(lane.base) then
      if ledger.limits.again then moved[sequence] = 'too-many-sequences' end
      return 'too-many-sequences'
    end
  end

  local left = tonumber(deadline)
  deadline = string.format('%.0f', now + left)
  local tells = job and tellsBegin(lane.base, job) and '0' or ''
  if not isStep then
    local facts = table.concat({request, '', '0', isBrief and '4' or '0', deadline, gateway, ttl, tells .. '0', ''}, '|')
    local entry = queueUp(lane, facts, frame, terms)
    -- With `entry` the request can be taken out of the queue (withdraw.lua). For a step of a
    -- sequence none is noted: others may wait for it.
    if not isBrief then record('out:' .. counted, lane.pin, digest, ttl, left, attended, entry, terms, job) end
    noteJob(lane, request, job, ttl, left, deadline, '', '0', digest)
    ledger.count(lane.model, tenant, counted, bytes, nil, nil, isBrief and briefOf(lane.pin, left, entry, terms) or nil)
    return 'admitted'
  end
  if not isBrief then record('out:' .. counted, lane.pin, digest, ttl, left, attended, nil, terms, job) end

  if lapsed then
    noteExpired(lane.base, name, seq)
    local checkpoints = versionKeys(lane.base, name, seq.at, seq.kept)
    if #checkpoints > 0 then redis.call('UNLINK', unpack(checkpoints)) end
    seq = nil
  end
  seq = seq or newSequence()
  -- Checkpoints that a step may need are kept for a day past its deadline, as its record is. Nearly
  -- always they are anyway.
  local keptUntil = seq.keptUntil
  if not start then keptUntil = renewVersions(lane.base, name, seq.at, seq.kept, keptUntil, now + left + DAY) end
  local step = string.format('%.0f', seq.next + 1)
  local ended = (flags == '2' or flags == '3') and '1' or '0'
  local number = tells .. string.format('%.0f', start and 1 or numberOf(seq))
  local facts = table.concat({request, name, step, isBrief and BRIEF_FLAGS[flags] or flags, deadline, gateway, ttl, number}, '|')
  local entry
  if running then
    redis.call('RPUSH', 'wait:' .. sequence, cmsgpack.pack({facts, frame, lane.pin, terms ~= '' and terms or nil}))
  else
    lane.busy[#lane.busy + 1] = '+inf'
    lane.busy[#lane.busy + 1] = name
    entry = queueUp(lane, facts .. '|' .. seq.at, frame, terms)
  end
  seq.next, seq.ended, seq.pin, seq.keptUntil = seq.next + 1, ended, lane.pin, keptUntil
  if start then seq.start = seq.next end
  if entry then seq.entry, seq.request, seq.on = entry, request, lane.pin end
  noteSequence(lane.base, name, seq)
  noteJob(lane, request, job, ttl, left, deadline, name, step, digest)
  ledger.count(lane.model, tenant, counted, bytes, step, name, isBrief and briefOf(lane.pin, left, nil, terms) or nil)
  return 'admitted'
end

-- Answer one request by this function. One that meets an error costs the others nothing.
local function answerBy(decide, ...)
  local whole, answer = pcall(decide, ...)
  if whole then return answer end
  return {'failed', type(answer) == 'table' and answer.err or tostring(answer)}
end

-- What the record holds of the last call: its number, and an answer for each of its requests.
local function lastCall()
  local record = redis.call('GET', calls)
  if not record then return 0, {} end
  return cmsgpack.unpack(record)
end

-- Note this call as the last one. Most requests are admitted, so that answer is kept as `true`; an
-- outcome is not kept, since it can be read again.
local function noteCall(said)
  local kept = {}
  for i = 1, #said do
    local answer = said[i]
    if answer == 'admitted' then
      kept[i] = true
    elseif type(answer) == 'table' and answer[1] == 'known' then
      kept[i] = 'known'
    else
      kept[i] = answer
    end
  end
  redis.call('SET', calls, cmsgpack.pack(number, kept), 'PX', recordMs)
end

-- The answer of the first copy of this call to a request.
local function recall(kept, lane, request, digest, attended, job)
  if kept == true then return 'admitted' end
  if kept == 'known' then return known(lane, request, digest, attended, job) or 'forgotten' end
  return kept
end

-- What the call says of jobs, by the numbers of their requests.
local function jobsOf()
  local jobs, a = {}, requestsEnd + 1
  while a <= #ARGV - 4 do
    local job = {name = ARGV[a + 1], again = ARGV[a + 1] ~= '', was = ARGV[a + 2], keep = ARGV[a + 3], fields = {}, bytes = 0}
    local count = tonumber(ARGV[a + 4])
    for i = 1, count do
      job.fields[i] = ARGV[a + 4 + i]
      job.bytes = job.bytes + #job.fields[i]
      if i % 2 == 1 and job.fields[i] == 'tell' then job.tell = ARGV[a + 5 + i] end
    end
    jobs[tonumber(ARGV[a])] = job
    a = a + 5 + count
  end
  return jobs
end

local last, kept = lastCall()
if number < last then return {'late'} end
if last < acknowledged then return {'gone-back', last} end
local said, brief = {}, {}
local first = 4 + 3 * laneCount
if number ~= last then
  ledger = openLedger(load, ARGV[2], ARGV[4], lanes, first, requestsEnd, now)
  local names = {}
  for a = first, requestsEnd - 1, 12 do
    local base = lanes[tonumber(ARGV[a + 1])].base
    if ARGV[a + 8] ~= '' then addTo(names, base, ARGV[a + 8]) end
  end
  for base, some in pairs(names) do lookUpSequences(base, some) end
end
local jobs = requestsEnd < #ARGV - 4 and jobsOf() or {}
for a = first, requestsEnd - 1, 12 do
  local lane = lanes[tonumber(ARGV[a + 1])]
  if number == last then
    said[#said + 1] = answerBy(recall, kept[#said + 1], lane, ARGV[a + 2], ARGV[a + 4], ARGV[a + 7],
      jobs[#said + 1])
  else
    brief[#said + 1] = isBriefOne(ARGV[a + 7], ARGV[a + 4], ARGV[a + 5])
    said[#said + 1] = answerBy(admit, lane, ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7],
      ARGV[a + 8], ARGV[a + 9], ARGV[a + 10], ARGV[a + 11], ARGV[a + 12], jobs[#said + 1])
  end
end
if number == last then return {'answered', said, {}} end
local loads, failure = ledger.close()
if failure then
  for i = 1, #said do
    if brief[i] and said[i] == 'admitted' then said[i] = {'failed', failure} end
  end
end
noteCall(said)
writeSequences()
for i = 1, #lanes do
  if #lanes[i].busy > 0 then redis.pcall('ZADD', 'live:' .. lanes[i].base, unpack(lanes[i].busy)) end
end
return {'answered', said, loads}
