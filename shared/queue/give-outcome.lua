#!lua flags=allow-oom
-- give-outcome.lua: give a request an outcome from outside of a worker, if it has none yet. A
-- worker that holds the request finds the outcome at its commit, and the request takes no effect.
--   KEYS[1] outcome hash   KEYS[2] what is counted (load.lua)
--   ARGV[1] kind   ARGV[2] body
--   ARGV[3] least TTL ms of the outcome; admission may have asked for a longer one
--   ARGV[4] '1' if surely no worker can commit the request any more, else '0'
--   Returns {'given'}               it has this outcome now
--           {'known', kind, body}   it had an outcome already
--           {'sealed'}              its stream has its final record: the outcome is what that says,
--                                   and comes with the commit of the worker that holds it
--           {'unknown'}             there is no such request, or not any more
-- include load.lua
local known = redis.call('HMGET', KEYS[1], 'digest', 'kind', 'body', 'sealed', 'ttl')
if not known[1] then return {'unknown'} end
if known[2] then return {'known', known[2], known[3] or ''} end
if known[4] and ARGV[4] ~= '1' then return {'sealed'} end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'kind', ARGV[1], 'body', ARGV[2], 'ended', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', KEYS[1], math.max(tonumber(ARGV[3]), tonumber(known[5] or '0')))
letGo(KEYS[2], {KEYS[1]:sub(5)}, true)
return {'given'}
