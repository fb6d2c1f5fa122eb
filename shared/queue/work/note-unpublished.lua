#!lua flags=allow-oom
-- note-unpublished.lua: leave a gateway the names of requests that have ended, since this worker
-- cannot reach NATS to tell it.
--   KEYS[1] the gateway's list
--   ARGV[1] how long the list is kept, ms   then the names
--   Returns 'noted'    a name that is noted twice is looked up twice
redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'noted'
