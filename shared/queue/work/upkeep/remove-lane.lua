#!lua flags=allow-oom
-- remove-lane.lua: remove an empty lane that no worker serves.
--   KEYS.ready       the stream
--   KEYS.queue       the parked requests, by rank
--   KEYS.runs        hash: the runs of each suspect, by entry (begin-alone.lua)
--   KEYS.reconciler  held by the worker that reconciles the lane in this round
--   Returns 'removed'  also if there was no such lane
--           'in-use'   the lane has an entry or a parked request
if redis.call('XLEN', KEYS.ready) > 0 or redis.call('EXISTS', KEYS.queue) == 1 then return 'in-use' end
redis.call('UNLINK', unpack(KEYS))
return 'removed'
