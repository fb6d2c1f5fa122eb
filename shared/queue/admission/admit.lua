#!lua
-- admit.lua: number each request's step and queue the request, unless the request is known, the
-- script refuses it, or there is no room. Each request of a call gets an answer of its own, and a
-- call takes effect once. Redis does not begin the script while Redis refuses writes.
--   KEYS.load           the counts (load.lua)
--   KEYS.calls          the record of the gateway's last call. All buckets share both keys; in a
--                       cluster each bucket has its own pair, in its slot
--   KEYS.ready[]        the stream of each lane of the call. The script builds the other keys from
--                       the tag of the lane's bucket, so in a cluster all lanes are of one bucket
--   ARGV.gateway
--   ARGV.limits         limits.lua
--   ARGV.mostWaiting    most waiting steps of a sequence
--   ARGV.short          whether usual steps take the short way, 0/1
--   ARGV.tags           tags of the buckets whose live sequences count together, with spaces
--                       between
--   ARGV.number         number of the call, from 1
--   ARGV.acknowledged   number of this record's last call that Redis has answered; 0: none
--   ARGV.recordMs       ms for which to keep the record
--   ARGV.requestCount
--   ARGV.lanes[]        for each ready stream:
--     .base             tag of the bucket and model, `{tag}:model`
--     .pin              `version:digest` of the model that the lane's requests are for
--     .window           entries in the ready stream past which to park requests
--   ARGV.requests[]
--     .lane             number of the lane, from 1
--     .name             name of the request (`requestName` in address.ts)
--     .frame
--     .digest           of the client's order, if it has an Idempotency-Key; else '', and its id is
--                       new
--     .ttl              outcome TTL ms
--     .deadline         ms from now
--     .attended         ms for which a client surely wants the stream (attend.lua); 0: it runs to
--                       its end even without a reader; '' if it is no stream and its client waits,
--                       so that it may be brief (load.lua)
--     .sequence         name of the sequence (`tenant:id`); '' for none
--     .flags            START 1 + END 2; or 4 + END 2: the request begins its sequence if there is
--                       none, and its entry then has START, else not
--     .step             number that the step should have, counted from the sequence's START, which
--                       is 1; '' if the client names none
--     .terms            how it waits if parked, as in parking.lua, with the delay in ms from now;
--                       '' for the usual terms
--     .mostParked       most parked requests of its priority level; 0: no limit
--   ARGV.jobs[]         for the requests that run jobs (job.lua):
--     .request          number of the request in this call, from 1
--     .name             name of the job; '' for a new job, which takes the name of its request
--     .was              its stage (stageOf in job.lua): the job's last request, which is over, and
--                       when the job is due; '' for a new job
--     .keep             ms for which to keep its result
--     .fields...        fields of its record and their values; none unless it is new
--   A gateway has a single call under way for each record, and numbers its calls. Any copy of a
--   call may arrive, in any order, and long after its answer: a link can stall, and deliver its
--   bytes long after the gateway has changed to another link. So the record holds the number of the
--   last call, and the answers to its requests. The script answers a copy of the last call from the
--   record, and refuses an earlier call. If the gateway does not know how a call ended, the next
--   number makes that call harmless, done or not. The script notes every call, also a call that
--   only refused, because a copy of it might find room. The record costs a GET and a SET for each
--   call. It stays for an hour after the last call; a gateway that has nothing to admit sends a
--   call without requests in time. If the gateway knows of a record and Redis has none, the script
--   does not run the call: the call is late, or Redis has lost acknowledged calls.
--   Returns {'answered', answers, loads}
--             done now or before, with an answer for each request; and the present counts of the
--             call's models and tenants, as a list of field, requests, bytes, and as `s:<model>`,
--             live sequences, 0; for tenants with a limit of sequences as `h:<tenant>`, sequences,
--             0; empty if an earlier copy did the call
--           {'late'}
--             Redis has done a later call; this call has no effect
--           {'gone-back', last}
--             Redis knows of no call after `last`, which is before the last answered call; this
--             call has no effect
--           The answers, of which refusals have no effect, are
--           'admitted'               queued now
--           {'known', kind, body, pin}
--                                    admitted before under its Idempotency-Key, under that pin;
--                                    kind is '' while it has no outcome
--           {'admitted', name, remaining, reset} {'known', kind, body, pin, name, remaining, reset}
--                                    the same; the rate of this name (limits.lua) has room for so
--                                    many requests or tokens more, and is rested in so many µs. The
--                                    three come once for rates of requests and once for tokens
--           {'too-many', name}       refused: the owner of this name has as many generations as it
--                                    may have (limits.lua)
--           {'too-soon', name, wait} refused: its owner sent too many before, or used too many
--                                    tokens, by the rate of this name, and may come in so many µs
--           {'over-quota', name, field}
--                                    refused: the owner of this name has used up a quota: that of
--                                    this field of the record `taken` (usage.lua)
--           {'pinned', pin}          refused: a step without START whose sequence has another
--                                    version, or other files, as its pin
--           'held-back'              refused: an earlier step of its sequence in this call got
--                                    'pinned', or found no room and may come again
--           {'ahead', number} {'behind', number}
--                                    refused: the next step of its sequence has this number, and
--                                    the client has named a higher (ahead) or lower (behind) number
--           'mismatch'               refused: its Idempotency-Key belongs to another order
--           {'start-required', why}  refused: there is no such sequence, or it is over (past.lua)
--           'backlog-full' 'too-many-sequences' 'too-many-of-tenant'
--                                    refused; the last: the tenant has as many sequences of all
--                                    models as it may have
--           {'queue-full', limit}    refused, by the name of a limit (limits.lua)
--           'job-changed'            refused: its job is at another stage by now
--           'forgotten'              known to the first copy of this call, but its record has
--                                    expired since
--           {'failed', why}          an error in the middle, for example because a person has
--                                    changed a key of its sequence by hand: the request may or may
--                                    not be in the queue
local load = KEYS.load
-- include ../pieces/version.lua
-- include ../pieces/parking.lua
-- include ../pieces/past.lua
-- include ../pieces/job.lua
-- include ../pieces/events.lua
-- include limits.lua
local gateway, waitLimit, short = ARGV.gateway, tonumber(ARGV.mostWaiting), ARGV.short == '1'
local number, acknowledged = tonumber(ARGV.number), tonumber(ARGV.acknowledged)
local firstRequest = ARGV.lanes.FIRST + ARGV.lanes.WIDTH * #KEYS.ready
local firstJob = firstRequest + ARGV.requests.WIDTH * tonumber(ARGV.requestCount)
-- include ../pieces/time.lua
local at = string.format('%d', now)

local lanes = {}
for i = 1, #KEYS.ready do
  local base = ARGV.lanes[i].base
  lanes[i] = {
    ready = KEYS.ready[i],
    base = base,
    pin = ARGV.lanes[i].pin,
    window = tonumber(ARGV.lanes[i].window),
    -- Each request of the lane meets an error here again, and requests of other lanes do not.
    length = redis.pcall('XLEN', KEYS.ready[i]),
    new = {},
  }
end

-- How many requests of a priority level are parked in a lane, including requests past their delay.
local function parkedOf(lane, rank)
  local count, queue = 0, laneKeyOf('queue', lane.ready)
  for one = rank, rank + 1 do
    for _, tenant in ipairs(redis.call('ZRANGE', queue .. ':' .. one, 0, -1)) do
      count = count + redis.call('ZCARD', queue .. ':' .. one .. ':' .. tenant)
    end
  end
  return count
end

-- Queue a request that may run now. No request is parked while there is room, because every script
-- that makes room refills the stream.
-- Returns its entry in ready, or PARKED if there is no room.
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

-- The flags of a brief request's entry, by START 1 + END 2.
local BRIEF_FLAGS = {['0'] = '4', ['1'] = '5', ['2'] = '6', ['3'] = '7'}

local function isBriefOne(attended, digest, ttl)
  return attended == '' and digest == '' and tonumber(ttl) < ledger.limits.keep
end

-- The times that follow from a deadline: `due`, and until when Redis keeps what belongs to the
-- request (`needed`, and as text `keptUntil`).
local timesByDeadline = {}
local function timesOf(deadline)
  local times = timesByDeadline[deadline]
  if not times then
    local left = tonumber(deadline)
    times = {left = left, due = string.format('%d', now + left), needed = now + left + DAY}
    times.keptUntil = string.format('%d', times.needed)
    timesByDeadline[deadline] = times
  end
  return times
end

-- The facts of a brief request, for its field in `open`.
local function briefOf(bytes, step, sequence, pin, times, entry, terms)
  return TEXT.brief{bytes = bytes, step = step, sequence = sequence, at = at, keptUntil = times.keptUntil, pin = pin,
    gateway = gateway, ended = '0', entry = entry, terms = terms}
end

-- Write the record of any other new request. It lives for a day past the deadline even if every
-- process dies: a stream's deadline is for its first token, and its log lives as long as this hash.
-- The commit sets the final TTL.
local function record(out, pin, digest, ttl, deadline, attended, entry, terms, job)
  local fields = {'digest', digest, 'at', at, 'ttl', ttl, 'pin', pin, 'by', gateway}
  if attended > 0 then
    fields[11], fields[12] = 'wanted', string.format('%d', now + attended)
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
-- a request comes again under its id only in a copy of its call.
local function known(lane, request, digest, attended, job)
  if digest == '' then return nil end
  local out = 'out:' .. lane.base .. ':' .. request
  local found = redis.call('HMGET', out, 'digest', 'kind', 'body', 'pin')
  if not found[1] then
    -- A job may be there without its first request: before that request, or long after it.
    local asked = job and redis.call('HGET', jobKey(lane.base, request), 'digest')
    if not asked then return nil end
    return asked == digest and {'known', '', '', ''} or 'mismatch'
  end
  if found[1] ~= digest then return 'mismatch' end
  -- An earlier try may have been a stream for its readers; this try wants the whole answer.
  if not found[2] and (tonumber(attended) or 0) == 0 then redis.call('HDEL', out, 'wanted') end
  return {'known', found[2] or '', found[3] or '', found[4] or ''}
end

-- Sequences with a step in this call that got 'pinned', or found no room and may come again, with
-- that answer: no later step may overtake this step.
local moved = {}

-- The number of the next step of a sequence, counted from its START.
local function numberOf(seq) return seq.next + 2 - seq.start end

-- Note that a request runs a job. The job's record lives as long as the record of the request. So
-- does the record of the job's first request, by which a retry under its key finds the job.
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

-- Whether a webhook wants an event when the job's request begins. The entry says so (entry.ts), so
-- that a worker need not look for other requests.
local function tellsBegin(base, job)
  local tell = job.tell
  if job.again then tell = redis.call('HGET', jobKey(base, job.name), 'tell') end
  return wantsJobEvent(base, job.name, 'job.started', tell)
end

-- The terms with a Redis time in place of the delay: from then on the request goes behind all
-- others of its level.
local function termsAt(terms)
  if terms == '' then return terms end
  local rank, weight, delay = terms:match(PATTERN.terms(rank, weight, delay))
  if not delay or delay == '0' then return terms end
  return TEXT.terms{rank = rank, weight = weight, delay = string.format('%d', now + tonumber(delay))}
end

-- Admit a brief step without START, END, number, job and terms of its own: the short way of
-- `admit`, which does the same for a sequence that is idle and has not lapsed. The facts of the
-- sequence become no table.
-- Returns nil if anything is otherwise.
local function admitUsual(lane, place, request, frame, ttl, deadline, name)
  local text = sequencesOf(lane.base).found[name]
  if type(text) ~= 'string' then return nil end
  local next, done, start, ended, from, pin, entry, lapses, keptUntil, kept =
    text:match(PATTERN.sequence(next, done, start, ended, at, pin, entry, lapses, keptUntil, kept))
  local times = timesOf(deadline)
  if ended ~= '0' or entry ~= '' or pin ~= lane.pin or tonumber(lapses) <= now
    or tonumber(keptUntil) < times.needed then return nil end
  local tenant, bytes = request:match('^[^:]*'), #frame
  if type(lane.length) == 'table' or ledger.refuses(lane.model, tenant, bytes, nil)
    or ledger.overQuota(place) then return nil end
  local step = string.format('%d', next + 1)
  entry = queueUp(lane, TEXT.entry{request = request, sequence = name, step = step, flags = '4', deadline = times.due,
    gateway = gateway, ttl = ttl, number = string.format('%d', next + 2 - start), from = from}, frame, '')
  noteFacts(lane.base, name, WRITTEN.sequence{next = step, done = done, start = start, ended = '0', at = from, pin = pin,
    entry = entry, on = pin, request = request, lapses = lapses, keptUntil = keptUntil, kept = kept})
  ledger.count(lane.model, tenant, lane.base .. ':' .. request, bytes, briefOf(bytes, step, name, pin, times, '', ''),
    place)
  return 'admitted'
end

local function admit(lane, place, request, frame, digest, ttl, deadline, attended, name, flags, expected, terms, most, job)
  if short and (flags == '0' or flags == '4') and name ~= '' and expected == '' and terms == '' and not job
    and isBriefOne(attended, digest, ttl) and not moved[lane.base .. ':' .. name] then
    local answer = admitUsual(lane, place, request, frame, ttl, deadline, name)
    if answer then return answer end
  end
  local before = known(lane, request, digest, attended, job)
  if before then return before end
  local tooMany = ledger.tooMany(place)
  if tooMany then return tooMany end
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
      flags = string.format('%d', flags - (start and 3 or 4))
    end
    if not start then
      -- The step that has to come again may be the START that begins the sequence anew.
      if isNone and moved[sequence] then return 'held-back' end
      if not seq then return {'start-required', whyPast(lane.base, name, now)} end
      if lapsed then return {'start-required', WHYS[EXPIRED]} end
      if seq.ended ~= '0' then return {'start-required', WHYS[seq.ended]} end
      if seq.pin ~= lane.pin then
        moved[sequence] = 'pinned'
        return {'pinned', seq.pin}
      end
    end
    -- A step that finds no room by itself gets that answer at once, because to come again would not
    -- help.
    if moved[sequence] then
      if full then return {'queue-full', full} end
      if start and (moved[sequence] == 'too-many-sequences' or moved[sequence] == 'too-many-of-tenant') then
        return moved[sequence]
      end
      return 'held-back'
    end
    -- Earlier steps of this call have their numbers by now.
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
    local tooManySequences = not seq and ledger.begins(lane.base, tenant)
    if tooManySequences then
      if ledger.limits.again then moved[sequence] = tooManySequences end
      return tooManySequences
    end
  end

  local times = timesOf(deadline)
  local left = times.left
  deadline = times.due
  local tells = job and tellsBegin(lane.base, job) and '0' or ''
  if not isStep then
    local facts = TEXT.entry{request = request, sequence = '', step = '0', flags = isBrief and '4' or '0', deadline = deadline,
      gateway = gateway, ttl = ttl, number = tells .. '0', from = ''}
    local entry = queueUp(lane, facts, frame, terms)
    -- `entry` lets withdraw.lua take the request out of the queue. A step of a sequence notes none,
    -- because other steps may wait for it.
    if not isBrief then record('out:' .. counted, lane.pin, digest, ttl, left, attended, entry, terms, job) end
    noteJob(lane, request, job, ttl, left, deadline, '', '0', digest)
    ledger.count(lane.model, tenant, counted, bytes,
      isBrief and briefOf(bytes, '0', '', lane.pin, times, entry, terms) or bytes, place, job)
    return 'admitted'
  end
  if not isBrief then record('out:' .. counted, lane.pin, digest, ttl, left, attended, nil, terms, job) end

  if lapsed then
    noteExpired(lane.base, name, seq)
    local checkpoints = versionKeys(lane.base, name, seq.at, seq.kept)
    if #checkpoints > 0 then redis.call('UNLINK', unpack(checkpoints)) end
    seq = nil
  end
  if not seq then
    lane.new[#lane.new + 1] = '+inf'
    lane.new[#lane.new + 1] = name
    seq = newSequence()
  end
  -- Checkpoints that a step may need stay for a day past its deadline, like its record. They nearly
  -- always stay that long anyway.
  local keptUntil = seq.keptUntil
  if not start then keptUntil = renewVersions(lane.base, name, seq.at, seq.kept, keptUntil, times.needed) end
  local step = string.format('%d', seq.next + 1)
  local ended = (flags == '2' or flags == '3') and '1' or '0'
  local number = tells .. string.format('%d', start and 1 or numberOf(seq))
  local facts = HEAD.entry{request = request, sequence = name, step = step, flags = isBrief and BRIEF_FLAGS[flags] or flags,
    deadline = deadline, gateway = gateway, ttl = ttl, number = number}
  local entry
  if running then
    redis.call('RPUSH', 'wait:' .. sequence, cmsgpack.pack(LIST.waiting{facts = facts, frame = frame, pin = lane.pin,
      terms = terms ~= '' and terms or nil}))
  else
    entry = queueUp(lane, TEXT.entry{facts, from = seq.at}, frame, terms)
  end
  seq.next, seq.ended, seq.pin, seq.keptUntil = seq.next + 1, ended, lane.pin, keptUntil
  if start then seq.start = seq.next end
  if entry then seq.entry, seq.request, seq.on = entry, request, lane.pin end
  noteSequence(lane.base, name, seq)
  noteJob(lane, request, job, ttl, left, deadline, name, step, digest)
  ledger.count(lane.model, tenant, counted, bytes, isBrief and briefOf(bytes, step, name, lane.pin, times, '', terms)
    or HEAD.brief{bytes = bytes, step = step, sequence = name}, place, job)
  return 'admitted'
end

-- Answer a request by this function. A request that meets an error costs the other requests
-- nothing.
local function answerBy(decide, ...)
  local whole, answer = pcall(decide, ...)
  if whole then return answer end
  return {'failed', type(answer) == 'table' and answer.err or tostring(answer)}
end

-- Returns the number of the last call, and the answers to its requests.
local function lastCall()
  local record = redis.call('GET', KEYS.calls)
  if not record then return 0, {} end
  return cmsgpack.unpack(record)
end

-- Note this call as the last call. `true` stands for 'admitted', the most frequent answer. The
-- record has no outcomes, because the script can read an outcome again.
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
  redis.call('SET', KEYS.calls, cmsgpack.pack(number, kept), 'PX', ARGV.recordMs)
end

-- The answer of the first copy of this call to a request.
local function recall(kept, lane, request, digest, attended, job)
  if kept == true then return 'admitted' end
  if kept == 'known' then return known(lane, request, digest, attended, job) or 'forgotten' end
  return kept
end

-- The jobs of the call, by the numbers of their requests.
local function jobsOf()
  local jobs, at = {}, firstJob
  while at <= #ARGV do
    local name, count, before = ARGV.jobs(at).name, tonumber(ARGV.jobs(at).fields), at + ARGV.jobs.WIDTH - 1
    local job = {name = name, again = name ~= '', was = ARGV.jobs(at).was, keep = ARGV.jobs(at).keep, fields = {}, bytes = 0}
    for i = 1, count do
      job.fields[i] = ARGV.fields(before + i)
      job.bytes = job.bytes + #job.fields[i]
      if i % 2 == 1 and job.fields[i] == 'tell' then job.tell = ARGV.fields(before + i + 1) end
    end
    jobs[tonumber(ARGV.jobs(at).request)] = job
    at = at + ARGV.jobs.WIDTH + count
  end
  return jobs
end

local last, kept = lastCall()
if number < last then return {'late'} end
if last < acknowledged then return {'gone-back', last} end
local said, brief = {}, {}
if number ~= last then
  ledger = openLedger(load, ARGV.limits, ARGV.tags, lanes, firstRequest, firstJob, now, time)
  local names = {}
  for at = firstRequest, firstJob - 1, ARGV.requests.WIDTH do
    local base = lanes[tonumber(ARGV.requests(at).lane)].base
    if ARGV.requests(at).sequence ~= '' then addTo(names, base, ARGV.requests(at).sequence) end
  end
  for base, some in pairs(names) do lookUpSequences(base, some) end
end
local jobs = firstJob <= #ARGV and jobsOf() or {}
for at = firstRequest, firstJob - 1, ARGV.requests.WIDTH do
  local lane = lanes[tonumber(ARGV.requests(at).lane)]
  if number == last then
    said[#said + 1] = answerBy(recall, kept[#said + 1], lane, ARGV.requests(at).name, ARGV.requests(at).digest,
      ARGV.requests(at).attended, jobs[#said + 1])
  else
    local request = #said + 1
    brief[request] = isBriefOne(ARGV.requests(at).attended, ARGV.requests(at).digest, ARGV.requests(at).ttl)
    local answer = ledger.hasRates and ledger.tooSoon(request)
    if not answer then
      answer = answerBy(admit, lane, request, ARGV.requests(at).name, ARGV.requests(at).frame, ARGV.requests(at).digest,
        ARGV.requests(at).ttl, ARGV.requests(at).deadline, ARGV.requests(at).attended, ARGV.requests(at).sequence,
        ARGV.requests(at).flags, ARGV.requests(at).step, ARGV.requests(at).terms, ARGV.requests(at).mostParked,
        jobs[request])
      if ledger.hasRates and (answer == 'admitted' or answer[1] == 'known') then answer = ledger.charge(request, answer) end
    end
    local word = type(answer) == 'table' and answer[1] or answer
    if ledger.hasUsage and word ~= 'admitted' then
      ledger.tally(request, lane.base .. ':' .. ARGV.requests(at).name, word)
    end
    said[request] = answer
  end
end
if number == last then return {'answered', said, {}} end
local loads, failure = ledger.close()
if failure then
  for i = 1, #said do
    if brief[i] and (said[i] == 'admitted' or said[i][1] == 'admitted') then said[i] = {'failed', failure} end
  end
end
noteCall(said)
writeSequences()
for i = 1, #lanes do
  if #lanes[i].new > 0 then redis.pcall('ZADD', 'live:' .. lanes[i].base, unpack(lanes[i].new)) end
end
return {'answered', said, loads}
