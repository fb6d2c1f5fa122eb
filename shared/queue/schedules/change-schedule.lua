#!lua flags=allow-oom
-- change-schedule.lua: change or remove a schedule, unless another call was faster. A second copy
-- of a call finds the change of the first.
--   KEYS from make-schedule.lua
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] the facts that the caller has read
--   ARGV[4] the new facts, '' to remove the schedule
--   ARGV[5] Redis ms at which the schedule is due next, '' if never
--   Returns 'changed', or 'conflict' if the facts are no longer the facts read
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
