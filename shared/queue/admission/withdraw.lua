#!lua flags=allow-oom
-- withdraw.lua: take a request that has ended out of the queue, so that no worker has to spend a
-- slot on it only to acknowledge it. An entry that a worker holds stays with that worker. A step of
-- a sequence stays too, because other steps may wait for it.
--   KEYS.record  of the request (outcome.lua)
--   KEYS.load    the counts (load.lua)
--   ARGV.group
--   Returns 'withdrawn'   the request is not in the queue, by this call or for another reason
--           'held'        a worker has it
--           'left'        it has no outcome yet, or is a step of a sequence, or a brief request,
--                         which leaves the queue at its end; the script did nothing
local load = KEYS.load
-- include ../pieces/outcome.lua
local known = recordOf(load, KEYS.record)
if not known or not known.kind then return 'left' end
if known.parked and withdrawParked(KEYS.record, known.pin, known.parked) then return 'withdrawn' end
if not known.entry then return 'left' end
return withdrawEntry(KEYS.record, known.pin, ARGV.group, known.entry) and 'withdrawn' or 'held'
