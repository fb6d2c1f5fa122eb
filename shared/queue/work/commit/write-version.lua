#!lua flags=allow-oom
-- write-version.lua: write a checkpoint into a full Redis, which refuses the plain SET. Admitted
-- requests must end even then, because only that empties the queue.
--   KEYS[1] key of the version   ARGV[1] checkpoint   ARGV[2] TTL ms
--   Returns 'OK'
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
