#!lua flags=allow-oom
-- give-outcome.lua: give a request an outcome from outside of a run, if it has none yet. A worker that holds it finds the outcome at its
-- commit and lets the step take no effect.
--   KEYS[1] outcome hash
--   ARGV[1] kind   ARGV[2] body   ARGV[3] least TTL ms: it is kept as long as admission said
--   ARGV[4] '1' if surely no worker can commit it any more, else absent
--   Returns {'given'}
--           {'known', kind, body}
--           {'sealed'}    its stream has its final record: the outcome is what that says, and comes with the commit of the worker that holds it
--           {'unknown'}   there is no such request (any more)
local known = redis.call('HMGET', KEYS[1], 'digest', 'kind', 'body', 'sealed', 'ttl')
if not known[1] then return {'unknown'} end
if known[2] then return {'known', known[2], known[3]} end
if known[4] and ARGV[4] ~= '1' then return {'sealed'} end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'kind', ARGV[1], 'body', ARGV[2], 'ended', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', KEYS[1], math.max(tonumber(ARGV[3]), tonumber(known[5] or '0')))
return {'given'}
