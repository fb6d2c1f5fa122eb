#!lua flags=allow-oom
-- give-outcome.lua: give a request an outcome from outside of a worker, if it has none yet. A
-- worker that holds the request finds the outcome at its commit, and the request takes no effect.
-- One that is parked is taken out of what is parked.
--   KEYS[1] outcome hash   KEYS[2] what is counted (load.lua)
--   ARGV[1] kind   ARGV[2] body
--   ARGV[3] least TTL ms of the outcome; admission may have asked for a longer one
--   ARGV[4] '1' if surely no worker can commit the request any more, '2' to leave a request alone
--           that a worker holds, else '0'
--   ARGV[5] group
--   Returns {'given'}               it has this outcome now
--           {'known', kind, body}   it had an outcome already
--           {'sealed'}              its stream has its final record: the outcome is what that says,
--                                   and comes with the commit of the worker that holds it
--           {'held'}                a worker holds it, and ARGV[4] is '2'
--           {'unknown'}             there is no such request, or not any more
-- include load.lua
-- include parking.lua
local known = redis.call('HMGET', KEYS[1], 'digest', 'kind', 'body', 'sealed', 'ttl', 'parked', 'pin', 'entry')
if not known[1] then return {'unknown'} end
if known[2] then return {'known', known[2], known[3] or ''} end
if known[4] and ARGV[4] ~= '1' then return {'sealed'} end
local isParked = known[6] and withdrawParked(KEYS[1], known[7], known[6])
if ARGV[4] == '2' and not isParked then
  -- A step of a sequence has no entry in its outcome hash, and others may wait for it.
  local ready = 'ready:' .. KEYS[1]:match('^out:({[^}]*}:[^:]*)') .. ':' .. known[7]
  local pending = known[8] and redis.pcall('XPENDING', ready, ARGV[5], known[8], known[8], 1)
  -- An error: no worker has made the group yet, so none has the entry.
  if not pending or not pending.err and #pending > 0 then return {'held'} end
  refillIfParking(ready, redis.call('XDEL', ready, known[8]))
end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'kind', ARGV[1], 'body', ARGV[2], 'ended', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', KEYS[1], math.max(tonumber(ARGV[3]), tonumber(known[5] or '0')))
letGo(KEYS[2], {KEYS[1]:sub(5)}, true)
return {'given'}
