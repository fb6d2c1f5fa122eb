#!lua
-- write-batch.lua: make or change a batch, unless somebody was faster. All that a batch is lies in
-- one text, so a change is made of the very text that was read, or not at all.
--   KEYS[1] the batch   KEYS[2] open batches of all   KEYS[3] batches of the tenant, by when made
--   KEYS[4] open ones of the tenant
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] the text as it was read, '' where it is to be made
--   ARGV[4] the text as it is to be   ARGV[5] '1' while there is something to be done for it
--   ARGV[6] ms for which it is known after that   ARGV[7] most open ones of a tenant
--   ARGV[8] most of a tenant that are known
--   Returns 'written'    by this call, or by an earlier one
--           'conflict'   it is not as it was read any more
--           'full'       the tenant has as many open ones as it may
local key, open, all, ofTenant = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tenant, id, from, to, isOpen = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1'
-- include ../time.lua
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
-- Of the oldest those are forgotten that are gone, and those that are too many.
local oldest = redis.call('ZRANGE', all, 0, 9)
local spare = redis.call('ZCARD', all) - tonumber(ARGV[8])
for i = 1, #oldest do
  local other = key:sub(1, #key - #id) .. oldest[i]
  local isSpare = i <= spare and redis.call('SISMEMBER', ofTenant, oldest[i]) == 0
  if isSpare then redis.call('UNLINK', other) end
  if isSpare or redis.call('EXISTS', other) == 0 then redis.call('ZREM', all, oldest[i]) end
end
return 'written'
