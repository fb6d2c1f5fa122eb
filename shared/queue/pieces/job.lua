-- job.lua: the record of a job, beside the record of the request that runs the job. The job's
-- record holds the client's submission. The request's record (outcome.lua) and the queue say how
-- the job stands (jobs/view.lua): an open request whose entry a worker owns counts as running. The
-- request's record has a field `job` with the job's name. A further run of the job gets a new
-- request, in the same bucket; the job keeps the name of the first request. Scripts that admit or
-- end a request include this file.
--   key `job:{b}:m:r`  hash, by the name of the job's first request
--     at        Redis ms at which the job was recorded
--     request   name of the request that runs the job now   made  how many requests the job has had
--     due       Redis ms: no worker begins that request after this
--     sequence  of that request, and its number `step` there; '' and '0' for none
--     wait      ms: no request begins more than this after the job was first due
--     repeats   how to try again (records/jobs.ts)
--     run       Redis ms at which the job was first due, if its client has delayed it
--     digest    of the client's submission, for a job with an Idempotency-Key or a delay
--     ended     Redis ms at which the job ended while it waited for its time (later.lua), with the
--               outcome's body as `failure`. Such a job has no request that says how it stands
--     and from the gateway: `type`, `options`, `shown`; `schedule` and `tick` of a schedule's job;
--         `tell` and `target` of a job with a webhook of its own (job-events.lua); `labels`, if
--         workers publish the job's records for each label, as tokens with spaces between; `trace`,
--         the span of the submission, if it is sampled; and `body`, present only while the job may
--         run again
--   key `jobs:{b}:<tenant>`  sorted set: `m:r` of the tenant's jobs in the bucket, by `at`
--   key `tenants:{b}`        set: the tenants that have jobs in the bucket (jobs/tidy.lua)
-- The bodies of failed and expired jobs count as kept results (kept.lua), and go like kept results,
-- because any client can make jobs fail faster than their records expire.
-- include load.lua
-- include kept.lua
-- include later.lua
-- include job-events.lua
local function jobKey(base, job) return 'job:' .. base .. ':' .. job end

-- The index of a tenant's jobs; `base` is `{tag}:model`.
local function jobsKey(base, tenant) return 'jobs:' .. base:match('^{[^}]*}') .. ':' .. tenant end

-- Each new job looks at this many random jobs in its tenant's index, and removes the names of jobs
-- that are gone. So at most about half of the index is gone, however long its oldest jobs wait.
local LOOKED_AT = 2

-- Keep the record of a job for `life` ms, and the index as long as the longest-lived job.
local function keepJob(base, name, life)
  local index = jobsKey(base, name:match('^[^:]*'))
  redis.call('PEXPIRE', jobKey(base, name), math.ceil(life))
  if redis.call('PTTL', index) < life then redis.call('PEXPIRE', index, math.ceil(life)) end
end

-- Note a new job: the gateway's fields, and a place in the index.
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
--   name    of the job, as in its key   fields  of a new job, from the gateway; empty for a job
--   that exists already
--   life    ms for which the record is kept if every process dies
local function writeJob(base, name, fields, request, at, due, life, sequence, step)
  local key = jobKey(base, name)
  if #fields > 0 then recordJob(base, name, fields, at) end
  redis.call('HINCRBY', key, 'made', 1)
  redis.call('HSET', key, 'request', request, 'due', due, 'sequence', sequence, 'step', step)
  keepJob(base, name, life)
end

-- Returns the stage of a job (records/jobs.ts), how many requests the job has had, and when a
-- waiting job is due; nil if there is no such job.
local function stageOf(key)
  local found = redis.call('HMGET', key, 'request', 'next', 'made', 'at')
  if not found[4] then return nil end
  local due = dueOf(found[2], found[3])
  return TEXT.stage{request = found[1] or '', due = due and string.format('%d', due) or ''}, found[3], due
end

-- Returns when to try a failed job again, in Redis ms, then how many ms the job may live, then how
-- many requests the job has had. Returns nil if the job ends now.
local function nextTry(load, key, body, now)
  local job = redis.call('HMGET', key, 'repeats', 'made', 'wait', 'run', 'at')
  if not job[1] then return nil end
  local attempts, delay, factor, most, budget, codes = job[1]:match(PATTERN.repeats(attempts, delay, factor, most, budget, codes))
  local code, made = body:match('^{"code":"([a-z_]*)"'), tonumber(job[2])
  if not codes or not code or made >= tonumber(attempts) or not (' ' .. codes):find(' ' .. code .. ' ', 1, true) then return nil end
  local at = now + math.min(delay * factor ^ (made - 1), tonumber(most))
  local last = tonumber(job[4] or job[5]) + job[3]
  if at >= last or tonumber(budget) >= 0 and readLoads(load, {'later'}).later.bytes >= tonumber(budget) then return nil end
  return at, last - now, job[2]
end

-- End a job: keep the record for `ttl` ms, and the body only if the job may run again. `bytes` is
-- the size of the body. The caller counts the end by a later call of letGo.
local function closeJob(load, base, name, bytes, kind, body, ttl, now)
  local key, state = jobKey(base, name), endedAs(kind, body)
  if state == 'completed' or state == 'cancelled' then
    redis.call('HDEL', key, 'body')
    dropBody(load, key, bytes)
  else
    keepBody(load, key, bytes, string.format('%d', now + ttl))
  end
  redis.call('PEXPIRE', key, ttl)
  local field = 'e:' .. state .. ':' .. base:match(':(.*)$')
  endedJobs[field] = (endedJobs[field] or 0) + 1
  noteJobEvent(base, name, state, body, now)
end

-- The request of a job has ended. This ends the job too, unless a further attempt follows. The
-- job's record lives as long as the request's. `now` is Redis ms, as text.
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
