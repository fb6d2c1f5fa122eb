#!lua
-- write-batch.lua: make or change a batch, unless another process was faster. All facts of a batch
-- lie in a single text, so the script changes the very text that the caller has read, or nothing.
--   KEYS[1] the batch   KEYS[2] open batches of all tenants
--   KEYS[3] batches of the tenant, by when made   KEYS[4] open batches of the tenant
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] the text as the caller has read it, '' for a new batch
--   ARGV[4] the new text   ARGV[5] '1' while the batch still has work to do
--   ARGV[6] ms for which it stays after that   ARGV[7] most open batches of a tenant
--   ARGV[8] most batches of a tenant
--   Returns 'written'    by this call, or by an earlier call
--           'conflict'   the batch is no longer as the caller has read it
--           'full'       the tenant has as many open batches as it may
local key, open, all, ofTenant = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tenant, id, from, to, isOpen = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1'
-- include ../pieces/time.lua
local found = redis.call('GET', key) or ''
if found ~= to and found ~= from then return 'conflict' end
if found == '' and from == '' then
  if redis.call('SCARD', ofTenant) >= tonumber(ARGV[7]) then return 'full' end
  redis.call('ZADD', all, 'NX', string.format('%.0f', now), id)
end
local member = tenant .. ' ' .. id
if isOpen then
  redis.call('SET', key, to)
  redis.call('HSET', open, member, '1')
  redis.call('SADD', ofTenant, id)
  return 'written'
end
redis.call('SET', key, to, 'PX', ARGV[6])
redis.call('HDEL', open, member)
redis.call('SREM', ofTenant, id)
-- Among the oldest batches, forget those that have expired, and closed batches beyond the limit.
local oldest = redis.call('ZRANGE', all, 0, 9)
local spare = redis.call('ZCARD', all) - tonumber(ARGV[8])
for i = 1, #oldest do
  local other = key:sub(1, #key - #id) .. oldest[i]
  local isSpare = i <= spare and redis.call('SISMEMBER', ofTenant, oldest[i]) == 0
  if isSpare then redis.call('UNLINK', other) end
  if isSpare or redis.call('EXISTS', other) == 0 then redis.call('ZREM', all, oldest[i]) end
end
return 'written'
