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
--     and what the gateway says of it: `type`, `options`, `shown`, and `body`, which is there only
--     while the job may be run once more
--   key `jobs:{b}:<tenant>`  sorted set: `m:r` of the tenant's jobs in the bucket, by `at`
local function jobKey(base, job) return 'job:' .. base .. ':' .. job end

-- The index of a tenant's jobs; `base` is `{tag}:model`.
local function jobsKey(base, tenant) return 'jobs:' .. base:match('^{[^}]*}') .. ':' .. tenant end

-- How many of a tenant's oldest jobs each new one looks at, and takes out of the index if they are
-- gone.
local OLDEST = 2

-- Note a request that runs a job.
--   name    of the job, as in its key   fields  what the gateway says of it; empty for one that is
--   there already
--   life    ms for which the record is kept if every process dies
local function writeJob(base, name, fields, request, at, due, life, sequence, step)
  local key = jobKey(base, name)
  if #fields > 0 then
    local index, id = jobsKey(base, name:match('^[^:]*')), base:match(':(.*)$') .. ':' .. name
    redis.call('HSET', key, 'at', at, unpack(fields))
    for _, old in ipairs(redis.call('ZRANGE', index, 0, OLDEST - 1)) do
      if redis.call('EXISTS', 'job:' .. base:match('^{[^}]*}') .. ':' .. old) == 0 then redis.call('ZREM', index, old) end
    end
    redis.call('ZADD', index, at, id)
    -- It lives as long as the job in it that may live longest.
    local left = redis.call('PTTL', index)
    if left < life then redis.call('PEXPIRE', index, life) end
  end
  redis.call('HINCRBY', key, 'made', 1)
  redis.call('HSET', key, 'request', request, 'due', due, 'sequence', sequence, 'step', step)
  redis.call('PEXPIRE', key, life)
end

-- The request of a job has ended: its record is kept for as long as the request's, in ms, and its
-- body only if it may be run once more.
local function endJob(base, name, kind, body, ttl)
  local key = jobKey(base, name)
  if kind == 'result' or body:find('"code":"cancelled"', 1, true) == 2 then redis.call('HDEL', key, 'body') end
  redis.call('PEXPIRE', key, ttl)
end
