#!lua flags=allow-oom
-- tidy.lua: look at some places in the index of a tenant's jobs, the oldest first.
--   - Removes the places of jobs that are gone.
--   - Returns the jobs that have not begun by their due time. Such a job would wait for ever if its
--     gateway is gone and no worker reads its lane.
--   - Ends jobs whose request ended under an older Baton, which had no jobs: notes their events,
--     and prepares their further attempts.
--   KEYS.jobs     of the tenant (job.lua)
--   KEYS.tenants  the tenants with jobs
--   KEYS.load     the counts (load.lua)
--   ARGV.tag      of the bucket
--   ARGV.tenant
--   ARGV.from     the first place, from 0
--   ARGV.most     most places
--   Returns {next, jobs}  the first place of the next call, -1 at the end of the index; the overdue
--                         jobs, as in the index
local load = KEYS.load
-- include ../pieces/job.lua
local from, most = tonumber(ARGV.from), tonumber(ARGV.most)
-- include ../pieces/time.lua

-- Ms. The script that ends a request gives the job's record the request's TTL. Otherwise the job's
-- TTL is longer by more than this.
local UNENDED = 43200000

-- End a job if its request has ended but the job has not.
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

local found = redis.call('ZRANGE', KEYS.jobs, from, from + most - 1)
local gone, overdue = {}, {}
for _, one in ipairs(found) do
  local model, name = one:match('^([^:]*):(.*)$')
  local base = ARGV.tag .. ':' .. (model or '')
  local job = redis.pcall('HMGET', 'job:' .. base .. ':' .. (name or ''), 'at', 'request', 'due', 'next', 'made', 'ended')
  if not job.err and not job[1] then
    gone[#gone + 1] = one
  elseif not (job.err or not job[2] or dueOf(job[4], job[5]) or job[6]) then
    -- The job neither waits for its time nor has ended while it waited.
    endWithRequest(base, name, job[2])
    if tonumber(job[3] or '') and tonumber(job[3]) <= now then
      local request = redis.pcall('HMGET', 'out:' .. base .. ':' .. job[2], 'digest', 'kind', 'began', 'sealed')
      if not request.err and request[1] and not (request[2] or request[3] or request[4]) then overdue[#overdue + 1] = one end
    end
  end
end
letGo(load, {})
if #gone > 0 then redis.call('ZREM', KEYS.jobs, unpack(gone)) end
if redis.call('EXISTS', KEYS.jobs) == 0 then redis.call('SREM', KEYS.tenants, ARGV.tenant) end
return {#found < most and -1 or from + #found - #gone, overdue}
