#!lua flags=allow-oom
-- tidy.lua: forget the requests that workers have set aside too long ago, and note the models that
-- have such requests.
--   KEYS[1] the models with requests set aside (set-aside.lua)
--   ARGV[1] tag of the bucket
--   ARGV[2..] models that may have some: an earlier version of Baton set requests aside without a
--             note of their model
--   Returns how many models have some
local tag = ARGV[1]
-- include ../pieces/time.lua

for i = 2, #ARGV do
  local newest = redis.pcall('XREVRANGE', 'dead:' .. tag .. ':' .. ARGV[i], '+', '-', 'COUNT', 1)
  if not newest.err and newest[1] then redis.call('ZADD', KEYS[1], newest[1][1]:match('^%d+'), ARGV[i]) end
end
for _, model in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local dead = 'dead:' .. tag .. ':' .. model
  local newest = redis.pcall('XREVRANGE', dead, '+', '-', 'COUNT', 1)
  if newest.err or not newest[1] then
    redis.call('ZREM', KEYS[1], model)
  else
    -- The TTL of the stream ends when its newest entry reaches the greatest age, so the TTL shows
    -- that age.
    local left = redis.call('PTTL', dead)
    local age = now + left - tonumber(newest[1][1]:match('^%d+'))
    if left > 0 and age > 0 then redis.call('XTRIM', dead, 'MINID', string.format('%.0f', now - age)) end
  end
end
return redis.call('ZCARD', KEYS[1])
