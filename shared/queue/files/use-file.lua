#!lua flags=allow-oom
-- use-file.lua: begin, renew or end a user's use of a file. A file in use is not deleted and does
-- not expire. A use that its user does not end is over when its time is.
--   KEYS[1] the file (reserve-file.lua)
--   KEYS[2] its users: when the use of each ends, in Redis ms
--   ARGV[1] user   ARGV[2] most ms of the use, 0 to end the use
--   Returns 'noted', or 'unknown' if there is no such file
local forMs = tonumber(ARGV[2])
if forMs <= 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 'noted'
end
local state, expires = unpack(redis.call('HMGET', KEYS[1], 'state', 'expires'))
if state ~= 'kept' then return 'unknown' end
-- include ../pieces/time.lua
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
local isOver = expires ~= '' and tonumber(expires) <= now
if isOver and not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 'unknown' end
redis.call('ZADD', KEYS[2], 'GT', string.format('%.0f', now + forMs), ARGV[1])
return 'noted'
