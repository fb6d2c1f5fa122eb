#!lua flags=allow-oom
-- give-outcome.lua: give a request without an outcome an outcome from outside of a worker. A worker
-- that holds the request finds the outcome at the commit, and the request takes no effect. The
-- script also takes a parked request out of the lane's queue.
--   KEYS.record  of the request (outcome.lua)
--   KEYS.load    the counts (load.lua)
--   ARGV.kind    of the outcome
--   ARGV.body    of the outcome
--   ARGV.ttl     least TTL ms of the outcome; admission may have asked for a longer TTL
--   ARGV.mode    '1' if surely no worker can commit the request any more, '2' to leave a request
--                alone that a worker holds, else '0'
--   ARGV.group
--   Returns {'given', pin}          the request has this outcome now; pin of the lane
--           {'known', kind, body}   the request had an outcome already
--           {'sealed'}              the stream's log has its final record. That record decides the
--                                   outcome, which comes with the commit of the worker that holds
--                                   the request
--           {'held'}                a worker holds the request, and `mode` is '2'
--           {'unknown'}             there is no such request, or no longer
local load = KEYS.load
-- include ../pieces/outcome.lua
local known = recordOf(load, KEYS.record)
if not known then return {'unknown'} end
if known.kind then return {'known', known.kind, known.body} end
if known.sealed and ARGV.mode ~= '1' then return {'sealed'} end
local isParked = known.parked and withdrawParked(KEYS.record, known.pin, known.parked)
if ARGV.mode == '2' and not isParked then
  -- The record of a step names no entry, and other steps may wait behind a step.
  if not known.entry or not withdrawEntry(KEYS.record, known.pin, ARGV.group, known.entry) then return {'held'} end
  known.entry = nil
end
-- include ../pieces/time.lua
local now = string.format('%d', now)
endFromOutside(load, KEYS.record, known, ARGV.group, ARGV.kind, ARGV.body, math.max(tonumber(ARGV.ttl), known.ttl), now)
return {'given', known.pin or ''}
