#!lua flags=allow-oom
-- note-unpublished.lua: leave a gateway the names of requests that have ended, because this worker
-- cannot reach NATS to tell the gateway.
--   KEYS.unpublished  the gateway's list
--   ARGV.ttl          ms for which the list stays
--   ARGV.requests[]   their names
--   Returns 'noted'    the gateway looks up a name twice if the list has it twice
redis.call('RPUSH', KEYS.unpublished, unpack(ARGV, ARGV.requests.FIRST))
redis.call('PEXPIRE', KEYS.unpublished, ARGV.ttl)
return 'noted'
