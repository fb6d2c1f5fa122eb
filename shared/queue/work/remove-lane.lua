#!lua flags=allow-oom
-- remove-lane.lua: remove a lane that is empty, and that nobody serves.
--   KEYS[1] ready stream   KEYS[2] what is parked, by rank   KEYS[3] runs hash
--   KEYS[4] reconciler key
--   Returns 'removed'  also where there was none
--           'in-use'   there is something in it
if redis.call('XLEN', KEYS[1]) > 0 or redis.call('EXISTS', KEYS[2]) == 1 then return 'in-use' end
redis.call('UNLINK', unpack(KEYS))
return 'removed'
