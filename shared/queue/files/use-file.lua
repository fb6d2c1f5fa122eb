#!lua flags=allow-oom
-- use-file.lua: somebody uses a file for a while from now on, or does no longer. A file that is
-- used is not deleted and does not expire. A use that nobody ends is over when its time is.
--   KEYS[1] the file (reserve-file.lua)
--   KEYS[2] its users: when the use of each ends, in Redis ms
--   ARGV[1] who   ARGV[2] ms for which it is used at most, 0 where it is used no longer
--   Returns 'noted', or 'unknown' where there is no such file
local forMs = tonumber(ARGV[2])
if forMs <= 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 'noted'
end
local state, expires = unpack(redis.call('HMGET', KEYS[1], 'state', 'expires'))
if state ~= 'kept' then return 'unknown' end
-- include ../time.lua
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
local isOver = expires ~= '' and tonumber(expires) <= now
if isOver and not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 'unknown' end
redis.call('ZADD', KEYS[2], 'GT', string.format('%.0f', now + forMs), ARGV[1])
return 'noted'
