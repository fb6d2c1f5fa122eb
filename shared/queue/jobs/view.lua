-- view.lua: how a job stands, from its record (job.lua) and its request's record (outcome.lua). A
-- piece of the scripts that read jobs.
--   `group`  the consumer group of the ready streams   `now`  Redis ms
-- A view is a list of
--   name of the job; state: 'scheduled' 'queued' 'running' 'completed' 'failed' 'cancelled'
--   'expired'
--   type; options; how its result is rendered; name of its request; how many requests the job has
--   had; Redis ms of its record; of its request's admission ('' if the job waits for its time, or
--   has ended there), begin ('' if not yet or unknown), and end ('' if not yet); ms until no worker
--   begins it any more
--   pin; ms for which its result is kept; outcome body of an error, else ''
--   about how many requests are before it while it is queued, else ''; bytes of its result, and
--   records of its log; its schedule and the Redis ms of that schedule's time, else '' and '';
--   Redis ms at which it is due, and ms until then, '' and '' if it does not wait; of its first due
--   time, '' if it was queued at once; after which none of its requests begins, '' if there is no
--   such time; how often put-off.lua has delayed it since its due time; Redis ms of this look
-- include ../pieces/outcome.lua
-- include ../pieces/kept.lua

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

-- Returns a view, or nil if there is no such job any more.
--   `buckets`  the number of buckets, over which requests spread evenly; nil: the view does not say
--              how many requests are before the job
local function viewOf(load, group, now, base, name, buckets)
  local job = redis.pcall('HMGET', jobKey(base, name), 'type', 'options', 'shown', 'request', 'made', 'at', 'due', 'sequence', 'step',
    'schedule', 'tick', 'next', 'run', 'wait', 'ended', 'failure', 'refused')
  if job.err or not job[4] then return nil end
  local request, sequence, made = job[4], job[8] or '', job[5] or '1'
  local due = dueOf(job[12], made)
  local last = job[14] and tonumber(job[13] or job[6]) + job[14]
  local function number(ms) return ms and string.format('%.0f', ms) or '' end
  local function times()
    return job[10] or '', job[11] or '', number(due), number(due and due - now), job[13] or '', number(last), job[17] or '0', number(now)
  end
  if due or job[15] then
    local code = (job[16] or ''):match('^{"code":"([a-z_]*)"')
    local state = due and 'scheduled' or (code == 'cancelled' or code == 'expired') and code or 'failed'
    return {name, state, job[1] or '', job[2] or '', job[3] or '', request, made, job[6] or '0', '', '',
      not due and job[15] or '', number((last or now) - now), '', '0', not due and job[16] or '', '', 0, 0, times()}
  end
  local out = 'out:' .. base .. ':' .. request
  local found = redis.pcall('HMGET', out, 'digest', 'kind', 'at', 'began', 'ended', 'pin', 'keep', 'ttl', 'sealed',
    'entry', 'parked', 'terms', 'told')
  if found.err or not found[1] then return nil end
  local state, began, place, failure, bytes = 'queued', found[4] or '', '', '', 0
  if found[2] == 'result' then
    state, bytes = 'completed', redis.call('HSTRLEN', out, 'body')
  elseif found[2] then
    failure = redis.call('HGET', out, 'body') or ''
    began = found[4] or found[13] or ''
    state = endedAs(found[2], failure)
  elseif began ~= '' or found[9] then
    state = 'running'
  else
    local entry, ready, seq = entryOf(base, request, sequence, found[6], found[10] or nil, found[11])
    if entry and entry ~= PARKED and entry ~= '' then
      local row = redis.pcall('XPENDING', ready, group, entry, entry, 1)
      if not row.err and row[1] then state, began = 'running', string.format('%.0f', now - row[1][3]) end
    end
    if buckets and state == 'queued' then
      if entry == PARKED then
        place = buckets * (undelivered(load, ready, group) + parkedBefore(ready, request, found[11] or found[12]))
      elseif entry and entry ~= '' then
        place = buckets * undelivered(load, ready, group, entry)
      elseif seq then
        place = math.max(0, tonumber(job[9]) - seq.done - 1)
      end
    end
  end
  local kept = string.format('%.0f', keptFor(found[8] or '0', found[7]))
  return {name, state, job[1] or '', job[2] or '', job[3] or '', request, made, job[6] or '0', found[3] or '0',
    began, found[5] or '', string.format('%.0f', tonumber(job[7] or '0') - now), found[6] or '', kept, failure, place, bytes,
    redis.call('LLEN', 'log:' .. out:sub(5)), times()}
end
