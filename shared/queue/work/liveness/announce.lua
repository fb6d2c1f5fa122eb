#!lua flags=allow-oom
-- announce.lua: note that a worker lives, and the models that it serves. A worker calls this at its
-- start, and again when it finds that it was declared dead or that the registry was wiped. Closes
-- the worker's graves, because the worker now finishes the entries that it still owns.
--   KEYS[1] workers zset   KEYS[2] graves zset   KEYS[3] announcements hash
--   KEYS[4] connections hash   KEYS[5] gone zset   KEYS[6] version   KEYS[7] left set
--   ARGV[1] worker   ARGV[2] announcement (JSON)   ARGV[3] lease ms   ARGV[4] its connection or ''
--   ARGV[5..] graves of the worker in its lanes
--   Returns Redis ms
-- include ../../pieces/time.lua
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[4], ARGV[1], ARGV[4]) end
redis.call('ZREM', KEYS[5], ARGV[1])
redis.call('SREM', KEYS[7], ARGV[1])
for i = 5, #ARGV do redis.call('ZREM', KEYS[2], ARGV[i]) end
redis.call('SET', KEYS[6], time[1] .. '.' .. time[2])
return now
