#!lua flags=allow-oom
-- change-schedule.lua: change or remove a schedule, unless somebody was faster. A second copy of a
-- call finds what the first one has done.
--   KEYS as make-schedule.lua has them
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] its facts as they were read
--   ARGV[4] as they are to be, '' where it is to be removed
--   ARGV[5] Redis ms at which it is due next, '' where it is not
--   Returns 'changed', or 'conflict' where it is not as it was read any more
local key, ids, sums, due, tenant, id = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local to, name = ARGV[4], tenant .. ':' .. id
local now = redis.call('HGET', key, 'facts') or ''
if now ~= to then
  if now ~= ARGV[3] then return 'conflict' end
  if to ~= '' then
    redis.call('HSET', key, 'facts', to)
  else
    local bytes = -(redis.call('HGET', key, 'bytes') or 0)
    redis.call('UNLINK', key)
    redis.call('ZREM', ids, id)
    redis.call('HINCRBY', sums, '', bytes)
    if redis.call('HINCRBY', sums, tenant, bytes) <= 0 then redis.call('HDEL', sums, tenant) end
  end
end
if to == '' or ARGV[5] == '' then redis.call('ZREM', due, name) else redis.call('ZADD', due, ARGV[5], name) end
return 'changed'
