#!lua flags=allow-oom
-- deployment.lua: write what all processes of one deployment agree on, unless another process was
-- faster. A full Redis must not keep workers from starting, since only they make it emptier: hence
-- allow-oom. These are a few bytes, written once.
--   KEYS[1] deployment hash
--   ARGV[1] buckets, proposed   ARGV[2] secret, proposed   ARGV[3] format of the keys
--   Returns {buckets, secret, format} as they are now
--           {nil, secret, nil} where the keys are those of an earlier format; nothing is written
if redis.call('HEXISTS', KEYS[1], 'shards') == 1 then return redis.call('HMGET', KEYS[1], 'buckets', 'secret', 'format') end
redis.call('HSETNX', KEYS[1], 'buckets', ARGV[1])
redis.call('HSETNX', KEYS[1], 'secret', ARGV[2])
redis.call('HSETNX', KEYS[1], 'format', ARGV[3])
return redis.call('HMGET', KEYS[1], 'buckets', 'secret', 'format')
