-- job.lua: the record of a job, beside that of the request which runs it. It holds what its client
-- asked for. How the job stands is said by the record of its request alone (outcome.lua), which
-- names the job in its field `job`. A job that is run once more gets a new request, in the same
-- bucket; the job keeps the name of its first one. Scripts include this file that admit a request
-- or end one.
--   key `job:{b}:m:r`  hash, by the name of the job's first request
--     at        Redis ms at which it was recorded
--     request   name of the request that runs it now   made  how many requests it has had
--     due       Redis ms: that request is not begun after this
--     sequence  of that request, and its number `step` there; '' and '0' for none
--     wait      ms: no request is begun so much later than it was first due
--     repeats   how it is tried more than once: attempts, ms before the second one, what each
--               further one multiplies these by, most ms, most bytes of all jobs that wait, and the
--               codes of errors after which it is tried again, each with spaces around it
--     run       Redis ms at which it was first due, if its client has delayed it
--     digest    of what was asked, where it has an Idempotency-Key or was delayed
--     ended     Redis ms at which it has ended while it waited for its time (later.lua), and the
--               outcome's body as `failure`; of one that has ended so no request says how it stands
--     and what the gateway says of it: `type`, `options`, `shown`; `schedule` and `tick` of one
--     that a schedule has made; `tell` and `target` of one with a webhook of its own
--     (job-events.lua); `labels` of one whose records are published for each of its labels, as
--     tokens with spaces between; and `body`, which is there only while the job may be run once
--     more
--   key `jobs:{b}:<tenant>`  sorted set: `m:r` of the tenant's jobs in the bucket, by `at`
--   key `tenants:{b}`        set: the tenants that have jobs in the bucket (jobs/tidy.lua)
-- The bodies of jobs that have failed or expired are counted with the results that are kept
-- (kept.lua), and go as these do: anybody can make jobs fail faster than their records expire.
-- include load.lua
-- include kept.lua
-- include later.lua
-- include job-events.lua
local function jobKey(base, job) return 'job:' .. base .. ':' .. job end

-- The index of a tenant's jobs; `base` is `{tag}:model`.
local function jobsKey(base, tenant) return 'jobs:' .. base:match('^{[^}]*}') .. ':' .. tenant end

-- Each new job looks at so many of its tenant's by chance, and takes those that are gone out of the
-- index. So at most about half of the index is gone, however long its oldest jobs wait.
local LOOKED_AT = 2

-- Keep the record of a job for so many ms, and the index as long as the job in it that may live
-- longest.
local function keepJob(base, name, life)
  local index = jobsKey(base, name:match('^[^:]*'))
  redis.call('PEXPIRE', jobKey(base, name), math.ceil(life))
  if redis.call('PTTL', index) < life then redis.call('PEXPIRE', index, math.ceil(life)) end
end

-- Note a new job: what the gateway says of it, and its place in the index.
local function recordJob(base, name, fields, at)
  local index = jobsKey(base, name:match('^[^:]*'))
  redis.call('HSET', jobKey(base, name), 'at', at, unpack(fields))
  for _, old in ipairs(redis.call('ZRANDMEMBER', index, LOOKED_AT)) do
    if redis.call('EXISTS', 'job:' .. base:match('^{[^}]*}') .. ':' .. old) == 0 then redis.call('ZREM', index, old) end
  end
  redis.call('ZADD', index, at, base:match(':(.*)$') .. ':' .. name)
  redis.pcall('SADD', 'tenants:' .. base:match('^{[^}]*}'), name:match('^[^:]*'))
end

-- Note a request that runs a job.
--   name    of the job, as in its key   fields  what the gateway says of it; empty for one that is
--   there already
--   life    ms for which the record is kept if every process dies
local function writeJob(base, name, fields, request, at, due, life, sequence, step)
  local key = jobKey(base, name)
  if #fields > 0 then recordJob(base, name, fields, at) end
  redis.call('HINCRBY', key, 'made', 1)
  redis.call('HSET', key, 'request', request, 'due', due, 'sequence', sequence, 'step', step)
  keepJob(base, name, life)
end

-- Returns the stage of a job, and how many requests it has had; nil where there is no such job. The
-- stage is which request it has and, if it waits, when it is due, with '|' between. A call that
-- changes the job has to name it.
local function stageOf(key)
  local found = redis.call('HMGET', key, 'request', 'next', 'made', 'at')
  if not found[4] then return nil end
  local due = dueOf(found[2], found[3])
  return (found[1] or '') .. '|' .. (due and string.format('%.0f', due) or ''), found[3]
end

-- When a job whose request has failed is to be tried once more, in Redis ms; and how long it may
-- live then, in ms. Nil if it is not.
local function nextTry(load, key, body, now)
  local job = redis.call('HMGET', key, 'repeats', 'made', 'wait', 'run', 'at')
  if not job[1] then return nil end
  local attempts, delay, factor, most, budget, codes = job[1]:match('^(%d+) (%d+) (%d+) (%d+) (%-?%d+)( .*)$')
  local code, made = body:match('^{"code":"([a-z_]*)"'), tonumber(job[2])
  if not codes or not code or made >= tonumber(attempts) or not codes:find(' ' .. code .. ' ', 1, true) then return nil end
  local at = now + math.min(delay * factor ^ (made - 1), tonumber(most))
  local last = tonumber(job[4] or job[5]) + job[3]
  if at >= last or tonumber(budget) >= 0 and readLoads(load, {'later'}).later.bytes >= tonumber(budget) then return nil end
  return at, last - now, job[2]
end

-- A job has ended: its record is kept for `ttl` ms, and its body only if it may be run once more.
-- `bytes` are those of its body.
local function closeJob(load, base, name, bytes, kind, body, ttl, now)
  local key, state = jobKey(base, name), endedAs(kind, body)
  if state == 'completed' or state == 'cancelled' then
    redis.call('HDEL', key, 'body')
    dropBody(load, key, bytes)
  else
    keepBody(load, key, bytes, string.format('%.0f', now + ttl))
  end
  redis.call('PEXPIRE', key, ttl)
  noteJobEvent(base, name, state, body, now)
end

-- The request of a job has ended, and so has the job, unless it is tried once more. Its record is
-- kept for as long as the request's. `now` is Redis ms, as text.
local function endJob(load, base, name, kind, body, ttl, now)
  local key = jobKey(base, name)
  local bytes = redis.call('HSTRLEN', key, 'body')
  local at, left, made
  if kind ~= 'result' then at, left, made = nextTry(load, key, body, now) end
  if at then
    noteJobEvent(base, name, 'scheduled', body, now)
    dropBody(load, key, bytes)
    putLater(load, base, name, bytes, made, at)
    return keepJob(base, name, left + ttl + 86400000)
  end
  closeJob(load, base, name, bytes, kind, body, ttl, now)
end
