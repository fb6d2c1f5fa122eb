#!lua flags=allow-oom
-- use-file.lua: somebody uses a file from now on, or does no longer. A file that is used is not
-- deleted and does not expire.
--   KEYS[1] the file (reserve-file.lua)   KEYS[2] its users   ARGV[1] who   ARGV[2] '1' or '0'
--   Returns 'noted', or 'unknown' where there is no such file
local isUsed = ARGV[2] == '1'
if not isUsed then
  redis.call('SREM', KEYS[2], ARGV[1])
  return 'noted'
end
local state, expires = unpack(redis.call('HMGET', KEYS[1], 'state', 'expires'))
if state ~= 'kept' then return 'unknown' end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if expires ~= '' and tonumber(expires) <= now and redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then return 'unknown' end
redis.call('SADD', KEYS[2], ARGV[1])
return 'noted'
