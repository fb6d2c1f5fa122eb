#!lua
-- write-batch.lua: make or change a batch, unless another process was faster. All facts of a batch
-- lie in a single text, so the script changes the very text that the caller has read, or nothing.
--   KEYS.batch
--   KEYS.openOfAll  open batches of all tenants
--   KEYS.all        batches of the tenant, by when made
--   KEYS.open       open batches of the tenant
--   ARGV.tenant
--   ARGV.id
--   ARGV.from       the text as the caller has read it, '' for a new batch
--   ARGV.to         the new text
--   ARGV.isOpen     '1' while the batch still has work to do
--   ARGV.ttl        ms for which it stays after that
--   ARGV.mostOpen   most open batches of a tenant
--   ARGV.most       most batches of a tenant
--   Returns 'written'    by this call, or by an earlier call
--           'conflict'   the batch is no longer as the caller has read it
--           'full'       the tenant has as many open batches as it may
local key, all, open, id, to = KEYS.batch, KEYS.all, KEYS.open, ARGV.id, ARGV.to
-- include ../pieces/time.lua
local found = redis.call('GET', key) or ''
if found ~= to and found ~= ARGV.from then return 'conflict' end
if found == '' and ARGV.from == '' then
  if redis.call('SCARD', open) >= tonumber(ARGV.mostOpen) then return 'full' end
  redis.call('ZADD', all, 'NX', string.format('%d', now), id)
end
local member = ARGV.tenant .. ' ' .. id
if ARGV.isOpen == '1' then
  redis.call('SET', key, to)
  redis.call('HSET', KEYS.openOfAll, member, '1')
  redis.call('SADD', open, id)
  return 'written'
end
redis.call('SET', key, to, 'PX', ARGV.ttl)
redis.call('HDEL', KEYS.openOfAll, member)
redis.call('SREM', open, id)
-- Among the oldest batches, forget those that have expired, and closed batches beyond the limit.
local oldest = redis.call('ZRANGE', all, 0, 9)
local spare = redis.call('ZCARD', all) - tonumber(ARGV.most)
for i = 1, #oldest do
  local other = key:sub(1, #key - #id) .. oldest[i]
  local isSpare = i <= spare and redis.call('SISMEMBER', open, oldest[i]) == 0
  if isSpare then redis.call('UNLINK', other) end
  if isSpare or redis.call('EXISTS', other) == 0 then redis.call('ZREM', all, oldest[i]) end
end
return 'written'
