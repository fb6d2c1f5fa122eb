#!lua flags=allow-oom
-- note-unpublished.lua: leave a gateway the names of requests that have ended, because this worker
-- cannot reach NATS to tell the gateway.
--   KEYS[1] the gateway's list
--   ARGV[1] ms for which the list stays   then the names
--   Returns 'noted'    the gateway looks up a name twice if the list has it twice
redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'noted'
