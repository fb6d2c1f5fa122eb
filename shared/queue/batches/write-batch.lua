#!lua
-- write-batch.lua: make or change a batch, unless another process was faster. All facts of a batch
-- lie in a single text, so the script changes the very text that the caller has read, or nothing.
--   KEYS.batch
--   KEYS.openOfAll  open batches of all tenants
--   KEYS.all        batches of the tenant, by when made
--   KEYS.open       open batches of the tenant
--   KEYS.load       the counts (load.lua), beside which the rates are
--   ARGV.tenant
--   ARGV.id
--   ARGV.from       the text as the caller has read it, '' for a new batch
--   ARGV.to         the new text
--   ARGV.open       the status of a batch that still has work to do, or ''
--   ARGV.ttl        ms for which it stays after that
--   ARGV.mostOpen   most open batches of a tenant
--   ARGV.most       most batches of a tenant
--   ARGV.rates      of the client who makes the batch (rates.lua), a list in JSON
--   ARGV.repeated   whether an earlier copy of the call may have taken effect, 0/1: then a batch
--                   that is there counts in no rate
--   Returns {said}  'written'   by this call, or by an earlier call
--                   'conflict'  the batch is no longer as the caller has read it, or there is
--                               another batch in place of the new one
--                   'full'      the tenant has as many open batches as it may
--           {'written' or 'conflict', name, remaining, reset}, {'too-soon', name, wait}
--                   as in admit.lua, if the client has rates. A 'conflict' counts if the client has
--                   made the batch that is there by the same order, which its digest says
local key, all, open, id, to = KEYS.batch, KEYS.all, KEYS.open, ARGV.id, ARGV.to
-- include ../pieces/load.lua
-- include ../pieces/rates.lua
-- include ../pieces/time.lua
local found = redis.call('GET', key) or ''
local rates, us = cjson.decode(ARGV.rates), time[1] * 1000000 + time[2]
if found ~= '' and ARGV.repeated == '1' then rates = {} end
local one = ratesOfOne(KEYS.load, rates, us)
if one.early then return one.early end
if found ~= to and found ~= ARGV.from then
  local isSame = #rates > 0 and cjson.decode(found).digest == cjson.decode(to).digest
  return isSame and one.charged('conflict') or {'conflict'}
end
if found == '' and ARGV.from == '' then
  if redis.call('SCARD', open) >= tonumber(ARGV.mostOpen) then return {'full'} end
  redis.call('ZADD', all, 'NX', string.format('%d', now), id)
end
local member = ARGV.tenant .. ' ' .. id
if ARGV.open ~= '' then
  redis.call('SET', key, to)
  redis.call('HSET', KEYS.openOfAll, member, ARGV.open)
  redis.call('SADD', open, id)
  return one.charged('written')
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
return {'written'}
