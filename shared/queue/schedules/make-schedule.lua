#!lua
-- make-schedule.lua: record a new schedule. Repeated calls record it once.
--   KEYS.schedule        a hash:
--                          facts  the schedule and how it stands, JSON; only change-schedule.lua
--                                 changes this
--                          job    the client's job, which each time of the schedule submits; never
--                                 changed
--                          asked  digest of the client's whole submission
--                          bytes  of facts and job, which count
--                          trace  the span of the submission, as a traceparent, if it is sampled.
--                                 It is not among the facts, because earlier versions of Baton read
--                                 no facts with further members
--   KEYS.ids             the tenant's schedules, by Redis ms of their creation
--   KEYS.bytes           of schedules: of each tenant, and of all under ''
--   KEYS.due             when schedules are due: `tenant:id` by Redis ms
--   ARGV.tenant
--   ARGV.id
--   ARGV.facts
--   ARGV.job
--   ARGV.asked
--   ARGV.madeAt          Redis ms of its creation
--   ARGV.dueAt           Redis ms at which it is first due
--   ARGV.most            most schedules of a tenant
--   ARGV.mostBytes       of a tenant
--   ARGV.mostBytesOfAll  most bytes of all tenants
--   ARGV.trace           '' if the submission is not sampled
--   Returns 'made'; 'known' if it exists, 'mismatch' if another schedule has its id
--           'full' 'too-large'   the tenant has reached its number, or its bytes, of schedules
--           'no-room'   all tenants together have reached their bytes
local tenant, facts, job = ARGV.tenant, ARGV.facts, ARGV.job
local known = redis.call('HGET', KEYS.schedule, 'asked')
if known then return known == ARGV.asked and 'known' or 'mismatch' end
if redis.call('ZCARD', KEYS.ids) >= tonumber(ARGV.most) then return 'full' end
local bytes = #facts + #job
if (redis.call('HGET', KEYS.bytes, tenant) or 0) + bytes > tonumber(ARGV.mostBytes) then return 'too-large' end
if (redis.call('HGET', KEYS.bytes, '') or 0) + bytes > tonumber(ARGV.mostBytesOfAll) then return 'no-room' end
redis.call('HSET', KEYS.schedule, 'facts', facts, 'job', job, 'asked', ARGV.asked, 'bytes', bytes)
if ARGV.trace ~= '' then redis.call('HSET', KEYS.schedule, 'trace', ARGV.trace) end
redis.call('ZADD', KEYS.ids, ARGV.madeAt, ARGV.id)
redis.call('HINCRBY', KEYS.bytes, tenant, bytes)
redis.call('HINCRBY', KEYS.bytes, '', bytes)
redis.call('ZADD', KEYS.due, ARGV.dueAt, tenant .. ':' .. ARGV.id)
return 'made'
