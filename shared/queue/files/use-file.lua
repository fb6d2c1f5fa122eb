#!lua flags=allow-oom
-- use-file.lua: begin, renew or end a user's use of a file. A file in use is not deleted and does
-- not expire. A use that its user does not end is over when its time is.
--   KEYS.file   (reserve-file.lua)
--   KEYS.users  of the file: when the use of each ends, in Redis ms
--   ARGV.user
--   ARGV.forMs  most ms of the use, 0 to end the use
--   Returns 'noted', or 'unknown' if there is no such file
local forMs = tonumber(ARGV.forMs)
if forMs <= 0 then
  redis.call('ZREM', KEYS.users, ARGV.user)
  return 'noted'
end
local state, expires = unpack(redis.call('HMGET', KEYS.file, 'state', 'expires'))
if state ~= 'kept' then return 'unknown' end
-- include ../pieces/time.lua
redis.call('ZREMRANGEBYSCORE', KEYS.users, '-inf', string.format('%d', now))
local isOver = expires ~= '' and tonumber(expires) <= now
if isOver and not redis.call('ZSCORE', KEYS.users, ARGV.user) then return 'unknown' end
redis.call('ZADD', KEYS.users, 'GT', string.format('%d', now + forMs), ARGV.user)
return 'noted'
