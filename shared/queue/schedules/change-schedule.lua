#!lua flags=allow-oom
-- change-schedule.lua: change or remove a schedule, unless another call was faster. A second copy
-- of a call finds the change of the first.
--   KEYS.schedule  this key and the further keys as in make-schedule.lua
--   KEYS.ids
--   KEYS.bytes
--   KEYS.due
--   ARGV.tenant
--   ARGV.id
--   ARGV.from      the facts that the caller has read
--   ARGV.to        the new facts, '' to remove the schedule
--   ARGV.dueAt     Redis ms at which the schedule is due next, '' if never
--   Returns 'changed', or 'conflict' if the facts are no longer the facts read
local key, tenant, to, due = KEYS.schedule, ARGV.tenant, ARGV.to, ARGV.dueAt
local name = tenant .. ':' .. ARGV.id
local now = redis.call('HGET', key, 'facts') or ''
if now ~= to then
  if now ~= ARGV.from then return 'conflict' end
  if to ~= '' then
    redis.call('HSET', key, 'facts', to)
  else
    local bytes = -(redis.call('HGET', key, 'bytes') or 0)
    redis.call('UNLINK', key)
    redis.call('ZREM', KEYS.ids, ARGV.id)
    redis.call('HINCRBY', KEYS.bytes, '', bytes)
    if redis.call('HINCRBY', KEYS.bytes, tenant, bytes) <= 0 then redis.call('HDEL', KEYS.bytes, tenant) end
  end
end
if to == '' or due == '' then redis.call('ZREM', KEYS.due, name) else redis.call('ZADD', KEYS.due, due, name) end
return 'changed'
