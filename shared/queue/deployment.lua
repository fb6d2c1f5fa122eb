#!lua flags=allow-oom
-- deployment.lua: write the settings that all processes of one deployment share, unless another
-- process was faster. The script has allow-oom because workers must start on a full Redis: only
-- workers make Redis emptier. The record takes a few bytes and is written once.
--   KEYS[1] deployment hash
--   ARGV[1] buckets, proposed   ARGV[2] secret, proposed   ARGV[3] format of the keys
--   Returns {buckets, secret, format} as they are now
--           {nil, secret, nil} if the keys have an earlier format; then the script writes nothing
if redis.call('HEXISTS', KEYS[1], 'shards') == 1 then return redis.call('HMGET', KEYS[1], 'buckets', 'secret', 'format') end
redis.call('HSETNX', KEYS[1], 'buckets', ARGV[1])
redis.call('HSETNX', KEYS[1], 'secret', ARGV[2])
redis.call('HSETNX', KEYS[1], 'format', ARGV[3])
return redis.call('HMGET', KEYS[1], 'buckets', 'secret', 'format')
