#!lua flags=allow-oom
-- remove-lane.lua: remove an empty lane that no worker serves.
--   KEYS[1] ready stream   KEYS[2] parked requests, by rank   KEYS[3] runs hash
--   KEYS[4] reconciler key
--   Returns 'removed'  also if there was no such lane
--           'in-use'   the lane has an entry or a parked request
if redis.call('XLEN', KEYS[1]) > 0 or redis.call('EXISTS', KEYS[2]) == 1 then return 'in-use' end
redis.call('UNLINK', unpack(KEYS))
return 'removed'
