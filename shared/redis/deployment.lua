#!lua flags=allow-oom
-- deployment.lua: write what all processes of one deployment agree on, unless another was faster. A
-- full Redis must not keep workers from starting, since only they make it emptier, hence allow-oom:
-- these are a few bytes, once.
--   KEYS[1] deployment hash
--   ARGV[1] shards, proposed   ARGV[2] secret, proposed
--   Returns {shards, secret} as they stand
redis.call('HSETNX', KEYS[1], 'shards', ARGV[1])
redis.call('HSETNX', KEYS[1], 'secret', ARGV[2])
return redis.call('HMGET', KEYS[1], 'shards', 'secret')
