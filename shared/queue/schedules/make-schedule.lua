#!lua
-- make-schedule.lua: record a new schedule. Repeated calls record it once.
--   KEYS[1] the schedule, a hash:
--     facts  the schedule and how it stands, JSON; only change-schedule.lua changes this
--     job    the client's job, which each time of the schedule submits; never changed
--     asked  digest of the client's whole submission   bytes  of facts and job, which count
--   KEYS[2] the tenant's schedules, by Redis ms of their creation
--   KEYS[3] bytes of schedules: of each tenant, and of all under ''
--   KEYS[4] when schedules are due: `tenant:id` by Redis ms
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] facts   ARGV[4] job   ARGV[5] asked
--   ARGV[6] Redis ms of its creation   ARGV[7] Redis ms at which it is first due
--   ARGV[8] most schedules of a tenant   ARGV[9] most bytes of a tenant   ARGV[10] of all tenants
--   Returns 'made'; 'known' if it exists, 'mismatch' if another schedule has its id
--           'full' 'too-large'   the tenant has reached its number, or its bytes, of schedules
--           'no-room'   all tenants together have reached their bytes
local key, ids, sums, due, tenant, id = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local known = redis.call('HGET', key, 'asked')
if known then return known == ARGV[5] and 'known' or 'mismatch' end
if redis.call('ZCARD', ids) >= tonumber(ARGV[8]) then return 'full' end
local bytes = #ARGV[3] + #ARGV[4]
if (redis.call('HGET', sums, tenant) or 0) + bytes > tonumber(ARGV[9]) then return 'too-large' end
if (redis.call('HGET', sums, '') or 0) + bytes > tonumber(ARGV[10]) then return 'no-room' end
redis.call('HSET', key, 'facts', ARGV[3], 'job', ARGV[4], 'asked', ARGV[5], 'bytes', bytes)
redis.call('ZADD', ids, ARGV[6], id)
redis.call('HINCRBY', sums, tenant, bytes)
redis.call('HINCRBY', sums, '', bytes)
redis.call('ZADD', due, ARGV[7], tenant .. ':' .. id)
return 'made'
