#!lua
-- keep.lua: put an answer into the cache. The answers that were not used for the longest time make
-- room. The script writes neither to the append-only file nor to replicas, because a lost answer
-- costs one run of its model. A server that has taken over or restarted has no answers, or old
-- ones, which are as right as ever: the digest names all that an answer depends on.
--   KEYS.answer      string: the answer
--   KEYS.used        zset of the place, which is a bucket of a Cluster or the whole server: each
--                    answer as `digest:bytes`, by the Redis ms of its last use. A member may
--                    outlive its answer, and counts until it makes room
--   KEYS.bytes       string: the bytes of the members
--   ARGV.digest      of the request
--   ARGV.answer
--   ARGV.mostBytes   of all answers of the place
--   ARGV.ttl         ms
--   Returns 'kept', 'known' if there is an answer, or 'no-room' if there is none after this call
-- include ../pieces/time.lua

-- Bytes that Redis takes for an answer beside the answer, about: its key, and its member.
local BESIDE = 400
-- Most answers that make room in a call, so that Redis is not busy for longer than a millisecond.
local MOST_DROPPED = 500

if redis.call('EXISTS', KEYS.answer) == 1 then return 'known' end
local answer, ttl, most = ARGV.answer, tonumber(ARGV.ttl), tonumber(ARGV.mostBytes)
local size, sum = #answer + BESIDE, tonumber(redis.call('GET', KEYS.bytes) or '0')
redis.set_repl(redis.REPL_NONE)
for _ = 1, MOST_DROPPED do
  local oldest = redis.call('ZRANGE', KEYS.used, 0, 0, 'WITHSCORES')
  if not oldest[1] then sum = 0 end
  -- The answer of a member that was last used so long ago has expired.
  if not oldest[1] or sum + size <= most and tonumber(oldest[2]) > now - ttl then break end
  local digest, bytes = oldest[1]:match('^(.*):(%d+)$')
  redis.call('ZREM', KEYS.used, oldest[1])
  redis.call('UNLINK', KEYS.used .. ':' .. digest)
  sum = math.max(0, sum - bytes - BESIDE)
end
local hasRoom = sum + size <= most
if hasRoom then
  redis.call('SET', KEYS.answer, answer, 'PX', ttl)
  local member = string.format('%s:%d', ARGV.digest, #answer)
  if redis.call('ZADD', KEYS.used, string.format('%d', now), member) == 1 then sum = sum + size end
end
redis.call('SET', KEYS.bytes, string.format('%d', sum), 'PX', ttl)
redis.call('PEXPIRE', KEYS.used, ttl)
return hasRoom and 'kept' or 'no-room'
