#!lua flags=allow-oom
-- write-owner.lua: make, change or remove the record of a key or of a tenant, unless another call
-- was faster, and note the change for all gateways. A key can be revoked on a full Redis, too.
--   KEYS.record
--   KEYS.changes    stream; `c`: the record
--   KEYS.operators  zset of the operators' keys: id -> Redis ms at which each expires
--   KEYS.indexes[]  zsets of the records: id -> Redis µs of the making, because lists show the
--                   newest first
--   ARGV.id         in the indexes
--   ARGV.change     names the record in the stream
--   ARGV.from       the record that the caller has read, '' to make it
--   ARGV.to         the new record, '' to remove it
--   ARGV.operator   Redis ms at which the operator's key expires, 'no' for another key, '' for a
--                   tenant
--   ARGV.spares     'last' to leave at least one operator
--   ARGV.ttl        ms after which the record goes, '' to keep it
--   ARGV.most       most entries of the stream
--   Returns 'written'   done, by this call or by an earlier one
--           'conflict'  the record is no longer the record read
--           'last'      no other key is an operator's now
-- include ../pieces/time.lua
local record, to = KEYS.record, ARGV.to
local was = redis.call('GET', record) or ''
if was == to then return 'written' end
if was ~= ARGV.from then return 'conflict' end
if ARGV.operator == 'no' then
  local expires = tonumber(redis.call('ZSCORE', KEYS.operators, ARGV.id) or 0)
  local isLast = expires > now and redis.call('ZCOUNT', KEYS.operators, string.format('(%d', now), '+inf') == 1
  if isLast and ARGV.spares == 'last' then return 'last' end
  redis.call('ZREM', KEYS.operators, ARGV.id)
elseif ARGV.operator ~= '' then
  redis.call('ZADD', KEYS.operators, ARGV.operator, ARGV.id)
end
if to == '' then redis.call('DEL', record) else redis.call('SET', record, to) end
if to ~= '' and ARGV.ttl ~= '' then redis.call('PEXPIRE', record, ARGV.ttl) end
for i = 1, #KEYS.indexes do
  if to == '' then
    redis.call('ZREM', KEYS.indexes[i], ARGV.id)
  elseif was == '' then
    redis.call('ZADD', KEYS.indexes[i], string.format('%d', time[1] * 1000000 + time[2]), ARGV.id)
  end
end
redis.call('XADD', KEYS.changes, 'MAXLEN', '~', ARGV.most, '*', 'c', ARGV.change)
return 'written'
