#!lua flags=allow-oom
-- announce.lua: a worker says that it lives, until it says so again or its time is up.
--   KEYS[1] workers zset   KEYS[2] announcements hash
--   ARGV[1] worker   ARGV[2] announcement (JSON)   ARGV[3] time to live, ms; 0 when it leaves
--   ARGV[4] how long lapsed announcements are remembered, ms
--   Returns when the announcement lapses, Redis ms. Those that lapsed long ago are swept along.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[4]))) do
  redis.call('HDEL', KEYS[2], gone)
  redis.call('ZREM', KEYS[1], gone)
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return now + tonumber(ARGV[3])
