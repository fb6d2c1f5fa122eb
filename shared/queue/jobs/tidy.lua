#!lua flags=allow-oom
-- tidy.lua: look at some places in the index of a tenant's jobs, the oldest first: take out those
-- of jobs that are gone, and tell of jobs that were to be begun by now and were not. One that has
-- no gateway any more to end it, and that no worker reads, would wait for ever.
--   KEYS[1] the tenant's jobs (job.lua)   KEYS[2] the tenants that have some
--   ARGV[1] tag of the bucket   ARGV[2] tenant   ARGV[3] the place with which it begins, from 0
--   ARGV[4] most places
--   Returns {next, jobs}  where to go on, -1 at the end of the index; the overdue, as in the index
local tag, tenant, from, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local found = redis.call('ZRANGE', KEYS[1], from, from + most - 1)
local gone, overdue = {}, {}
for _, one in ipairs(found) do
  local model, name = one:match('^([^:]*):(.*)$')
  local base = tag .. ':' .. (model or '')
  local job = redis.pcall('HMGET', 'job:' .. base .. ':' .. (name or ''), 'at', 'request', 'due')
  if not job.err and not job[1] then
    gone[#gone + 1] = one
  elseif job[2] and tonumber(job[3] or '') and tonumber(job[3]) <= now then
    local request = redis.pcall('HMGET', 'out:' .. base .. ':' .. job[2], 'digest', 'kind', 'began', 'sealed')
    if not request.err and request[1] and not (request[2] or request[3] or request[4]) then overdue[#overdue + 1] = one end
  end
end
if #gone > 0 then redis.call('ZREM', KEYS[1], unpack(gone)) end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], tenant) end
return {#found < most and -1 or from + #found - #gone, overdue}
