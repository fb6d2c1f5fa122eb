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
--   key `tenants:{b}`        set: the tenants that have jobs in the bucket (jobs/tidy.lua)
-- The bodies of jobs that have failed or expired are counted with the results that are kept
-- (kept.lua), and go as these do: anybody can make jobs fail faster than their records expire.
-- include load.lua
-- include kept.lua
local function jobKey(base, job) return 'job:' .. base .. ':' .. job end

-- The index of a tenant's jobs; `base` is `{tag}:model`.
local function jobsKey(base, tenant) return 'jobs:' .. base:match('^{[^}]*}') .. ':' .. tenant end

-- Each new job looks at so many of its tenant's by chance, and takes those that are gone out of the
-- index. So at most about half of the index is gone, however long its oldest jobs wait.
local LOOKED_AT = 2

-- Note a request that runs a job.
--   name    of the job, as in its key   fields  what the gateway says of it; empty for one that is
--   there already
--   life    ms for which the record is kept if every process dies
local function writeJob(base, name, fields, request, at, due, life, sequence, step)
  local key, index = jobKey(base, name), jobsKey(base, name:match('^[^:]*'))
  if #fields > 0 then
    redis.call('HSET', key, 'at', at, unpack(fields))
    for _, old in ipairs(redis.call('ZRANDMEMBER', index, LOOKED_AT)) do
      if redis.call('EXISTS', 'job:' .. base:match('^{[^}]*}') .. ':' .. old) == 0 then redis.call('ZREM', index, old) end
    end
    redis.call('ZADD', index, at, base:match(':(.*)$') .. ':' .. name)
    redis.pcall('SADD', 'tenants:' .. base:match('^{[^}]*}'), name:match('^[^:]*'))
  end
  -- It lives as long as the job in it that may live longest.
  if redis.call('PTTL', index) < life then redis.call('PEXPIRE', index, life) end
  redis.call('HINCRBY', key, 'made', 1)
  redis.call('HSET', key, 'request', request, 'due', due, 'sequence', sequence, 'step', step)
  redis.call('PEXPIRE', key, life)
end

-- The request of a job has ended: its record is kept for as long as the request's, in ms, and its
-- body only if it may be run once more. `now` is Redis ms, as text.
local function endJob(load, base, name, kind, body, ttl, now)
  local key = jobKey(base, name)
  local bytes = redis.call('HSTRLEN', key, 'body')
  if kind == 'result' or body:find('"code":"cancelled"', 1, true) == 2 then
    redis.call('HDEL', key, 'body')
    dropBody(load, key, bytes)
  else
    keepBody(load, key, bytes, string.format('%.0f', now + ttl))
  end
  redis.call('PEXPIRE', key, ttl)
end
