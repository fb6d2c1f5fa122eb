#!lua flags=allow-oom
-- tidy.lua: look at some places in the index of a tenant's jobs, the oldest first.
--   - Those of jobs that are gone are taken out.
--   - Jobs that were to be begun by now and were not are told of. One that has no gateway any more
--     to end it, and that no worker reads, would wait for ever.
--   - Jobs whose request was ended by a version of Baton that knows no jobs end now: whoever wants
--     to be told of it is, and those that are to be tried once more are.
--   KEYS[1] the tenant's jobs (job.lua)   KEYS[2] the tenants that have some
--   KEYS[3] what is counted (load.lua)
--   ARGV[1] tag of the bucket   ARGV[2] tenant   ARGV[3] the place with which it begins, from 0
--   ARGV[4] most places
--   Returns {next, jobs}  where to go on, -1 at the end of the index; the overdue, as in the index
local load = KEYS[3]
-- include ../job.lua
local tag, tenant, from, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
-- include ../time.lua

-- The script that ends a request gives the record of its job the same time to live. Without that
-- the job's is longer by more than this, in ms.
local UNENDED = 43200000

-- End a job if its request has ended without it.
local function endWithRequest(base, name, request)
  local key, out = jobKey(base, name), 'out:' .. base .. ':' .. request
  local life = redis.call('PTTL', key)
  if life < UNENDED then return end
  local ended = redis.pcall('HMGET', out, 'kind', 'ended')
  if ended.err or not ended[1] or not ended[2] then return end
  local ttl = redis.call('PTTL', out)
  if ttl <= 0 or life - ttl < UNENDED then return end
  local body = ended[1] ~= 'result' and redis.call('HGET', out, 'body') or ''
  endJob(load, base, name, ended[1], body, ttl, ended[2])
end

local found = redis.call('ZRANGE', KEYS[1], from, from + most - 1)
local gone, overdue = {}, {}
for _, one in ipairs(found) do
  local model, name = one:match('^([^:]*):(.*)$')
  local base = tag .. ':' .. (model or '')
  local job = redis.pcall('HMGET', 'job:' .. base .. ':' .. (name or ''), 'at', 'request', 'due', 'next', 'made', 'ended')
  if not job.err and not job[1] then
    gone[#gone + 1] = one
  elseif not (job.err or not job[2] or dueOf(job[4], job[5]) or job[6]) then
    -- It neither waits for its time nor has ended while it did.
    endWithRequest(base, name, job[2])
    if tonumber(job[3] or '') and tonumber(job[3]) <= now then
      local request = redis.pcall('HMGET', 'out:' .. base .. ':' .. job[2], 'digest', 'kind', 'began', 'sealed')
      if not request.err and request[1] and not (request[2] or request[3] or request[4]) then overdue[#overdue + 1] = one end
    end
  end
end
if #gone > 0 then redis.call('ZREM', KEYS[1], unpack(gone)) end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], tenant) end
return {#found < most and -1 or from + #found - #gone, overdue}
