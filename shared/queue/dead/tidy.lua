#!lua flags=allow-oom
-- tidy.lua: forget the requests that workers have set aside too long ago, and note the models that
-- have such requests.
--   KEYS.noted     the models with requests set aside (set-aside.lua)
--   ARGV.tag       of the bucket
--   ARGV.models[]  that may have some: an earlier version of Baton set requests aside without a
--                  note of their model
--   Returns how many models have some
-- include ../pieces/time.lua

for i = 1, #ARGV.models do
  local newest = redis.pcall('XREVRANGE', 'dead:' .. ARGV.tag .. ':' .. ARGV.models[i], '+', '-', 'COUNT', 1)
  if not newest.err and newest[1] then redis.call('ZADD', KEYS.noted, newest[1][1]:match('^%d+'), ARGV.models[i]) end
end
for _, model in ipairs(redis.call('ZRANGE', KEYS.noted, 0, -1)) do
  local dead = 'dead:' .. ARGV.tag .. ':' .. model
  local newest = redis.pcall('XREVRANGE', dead, '+', '-', 'COUNT', 1)
  if newest.err or not newest[1] then
    redis.call('ZREM', KEYS.noted, model)
  else
    -- The TTL of the stream ends when its newest entry reaches the greatest age, so the TTL shows
    -- that age.
    local left = redis.call('PTTL', dead)
    local age = now + left - tonumber(newest[1][1]:match('^%d+'))
    if left > 0 and age > 0 then redis.call('XTRIM', dead, 'MINID', string.format('%d', now - age)) end
  end
end
return redis.call('ZCARD', KEYS.noted)
