#!lua flags=allow-oom
-- give-outcome.lua: give a request an outcome from outside of a run, if it has none yet. A worker that holds it finds the outcome at its
-- commit and lets the step take no effect.
--   KEYS[1] outcome hash
--   ARGV[1] kind   ARGV[2] body   ARGV[3] TTL ms
--   Returns {'given'}  or {'known', kind, body}  or {'unknown'} when there is no such request (any more)
local known = redis.call('HMGET', KEYS[1], 'digest', 'kind', 'body')
if not known[1] then return {'unknown'} end
if known[2] then return {'known', known[2], known[3]} end
redis.call('HSET', KEYS[1], 'kind', ARGV[1], 'body', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'given'}
