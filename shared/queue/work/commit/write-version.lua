#!lua flags=allow-oom
-- write-version.lua: write a checkpoint into a full Redis, which refuses the plain SET. Admitted
-- requests must end even then, because only that empties the queue.
--   KEYS.version     key of the checkpoint
--   ARGV.checkpoint
--   ARGV.ttl         TTL of the checkpoint, ms
--   Returns 'OK'
return redis.call('SET', KEYS.version, ARGV.checkpoint, 'PX', ARGV.ttl)
