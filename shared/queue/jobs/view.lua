-- view.lua: how a job stands, from its record (job.lua), its request's record (outcome.lua) and the
-- queue. A piece of the scripts that read jobs.
--   `group`  the consumer group of the ready streams   `now`  Redis ms
-- include ../pieces/outcome.lua
-- include ../pieces/kept.lua
-- record jobView: newJobView packJobView

-- Bytes of entries that the script looks at, at most, to count the requests before an entry.
local LOOKED_BYTES = 1048576

-- Returns the entry of a request, and its ready stream. The entry is PARKED for a parked request,
-- and nil for a step that waits behind another step of its sequence.
local function entryOf(base, request, sequence, pin, entry, parked)
  if sequence == '' then return entry or parked and PARKED, 'ready:' .. base .. ':' .. pin end
  local seq = readableSequence(base, sequence)
  if not seq or seq.request ~= request then return nil, nil, seq end
  return seq.entry, 'ready:' .. base .. ':' .. seq.on, seq
end

-- Returns how many entries of a ready stream no worker has yet: all, or all before `entry`.
local function undelivered(load, ready, group, entry)
  local last, all = '0-0', redis.call('XLEN', ready)
  local groups = redis.pcall('XINFO', 'GROUPS', ready)
  for i = 1, groups.err and 0 or #groups do
    local about = {}
    for f = 1, #groups[i], 2 do about[groups[i][f]] = groups[i][f + 1] end
    if about.name == group then last, all = about['last-delivered-id'], all - about.pending end
  end
  if not entry then return all end
  local sum = loadFields(baseOf(ready) .. ':-')[1]
  local counted = readLoads(load, {sum})[sum]
  local most = math.max(1, math.floor(LOOKED_BYTES * math.max(counted.items, 1) / math.max(counted.bytes, 1)))
  most = math.min(most, 1000)
  local before = #redis.call('XRANGE', ready, '(' .. last, '(' .. entry, 'COUNT', most)
  return before < most and before or math.max(before, all - 1)
end

-- Returns how many parked requests go before this request: all of lower ranks, the earlier requests
-- of its tenant, and of each other tenant of its rank at most one more than of its own.
local function parkedBefore(ready, name, terms)
  local queue, rank, tenant = laneKeyOf('queue', ready), readTerms(terms), name:match('^[^:]*')
  local own = redis.call('ZRANK', queue .. ':' .. rank .. ':' .. tenant, name) or 0
  local before = own
  for _, one in ipairs(redis.call('ZRANGE', queue, 0, rank, 'BYSCORE')) do
    for _, other in ipairs(redis.call('ZRANGE', queue .. ':' .. one, 0, -1)) do
      if tonumber(one) < rank or other ~= tenant then
        local count = redis.call('ZCARD', queue .. ':' .. one .. ':' .. other)
        before = before + (tonumber(one) < rank and count or math.min(count, own + 1))
      end
    end
  end
  return before
end

-- Returns a view (records/jobs.ts), not yet packed, or nil if there is no such job any more.
--   `buckets`  the number of buckets, over which requests spread evenly; nil: the view does not say
--              how many requests are before the job
local function viewOf(load, group, now, base, name, buckets)
  local job = redis.pcall('HMGET', jobKey(base, name), 'type', 'options', 'shown', 'request', 'made', 'at', 'due', 'sequence', 'step',
    'schedule', 'tick', 'next', 'run', 'wait', 'ended', 'failure', 'refused')
  if job.err or not job[4] then return nil end
  local request, sequence, made = job[4], job[8] or '', job[5] or '1'
  local due = dueOf(job[12], made)
  local last = job[14] and tonumber(job[13] or job[6]) + job[14]
  local function number(ms) return ms and string.format('%d', ms) or '' end
  local view = newJobView()
  view.name, view.type, view.options, view.shown = name, job[1] or '', job[2] or '', job[3] or ''
  view.request, view.made, view.recordedAt = request, made, job[6] or '0'
  view.schedule, view.scheduledFor = job[10] or '', job[11] or ''
  view.dueAt, view.dueInMs, view.firstDueAt = number(due), number(due and due - now), job[13] or ''
  view.lastAt, view.refused, view.seenAt = number(last), job[17] or '0', number(now)
  if due or job[15] then
    local code = (job[16] or ''):match('^{"code":"([a-z_]*)"')
    view.state = due and 'scheduled' or (code == 'cancelled' or code == 'expired') and code or 'failed'
    view.leftMs = number((last or now) - now)
    if not due then view.endedAt, view.failure = job[15], job[16] or '' end
    return view
  end
  local out = 'out:' .. base .. ':' .. request
  local found = redis.pcall('HMGET', out, 'digest', 'kind', 'at', 'began', 'ended', 'pin', 'keep', 'ttl', 'sealed',
    'entry', 'parked', 'terms', 'told')
  if found.err or not found[1] then return nil end
  view.state, view.queuedAt, view.beganAt, view.endedAt = 'queued', found[3] or '0', found[4] or '', found[5] or ''
  view.leftMs = number(tonumber(job[7] or '0') - now)
  view.pin, view.keptMs = found[6] or '', number(keptFor(found[8] or '0', found[7]))
  view.records = redis.call('LLEN', 'log:' .. out:sub(5))
  if found[2] == 'result' then
    view.state, view.resultBytes = 'completed', redis.call('HSTRLEN', out, 'body')
  elseif found[2] then
    view.failure = redis.call('HGET', out, 'body') or ''
    view.beganAt = found[4] or found[13] or ''
    view.state = endedAs(found[2], view.failure)
  elseif view.beganAt ~= '' or found[9] then
    view.state = 'running'
  else
    local entry, ready, seq = entryOf(base, request, sequence, found[6], found[10] or nil, found[11])
    if entry and entry ~= PARKED and entry ~= '' then
      local row = redis.pcall('XPENDING', ready, group, entry, entry, 1)
      if not row.err and row[1] then view.state, view.beganAt = 'running', number(now - row[1][3]) end
    end
    if buckets and view.state == 'queued' then
      if entry == PARKED then
        view.position = buckets * (undelivered(load, ready, group) + parkedBefore(ready, request, found[11] or found[12]))
      elseif entry and entry ~= '' then
        view.position = buckets * undelivered(load, ready, group, entry)
      elseif seq then
        view.position = math.max(0, tonumber(job[9]) - seq.done - 1)
      end
    end
  end
  return view
end
