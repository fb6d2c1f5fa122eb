#!lua flags=allow-oom
-- withdraw.lua: take a request that has ended out of the queue, so that no worker has to spend a
-- slot on it only to acknowledge it. What a worker holds is left to that worker, and so is a step
-- of a sequence, since others may wait for it.
--   KEYS[1] outcome hash
--   ARGV[1] group
--   ARGV[2] what the key of the ready stream begins with; the pin follows, which the hash holds
--   Returns 'withdrawn'   it is not in the queue, by this call or for another reason
--           'held'        a worker has it
--           'left'        it has no outcome yet, or is a step of a sequence; nothing is done
-- include ../parking.lua
local facts = redis.call('HMGET', KEYS[1], 'kind', 'entry', 'pin', 'parked')
local entry = facts[2]
if not facts[1] then return 'left' end
if facts[4] and withdrawParked(KEYS[1], facts[3], facts[4]) then return 'withdrawn' end
if not entry then return 'left' end
local ready = ARGV[2] .. facts[3]
-- An error: no worker has made the group yet, so none has the entry.
local pending = redis.pcall('XPENDING', ready, ARGV[1], entry, entry, 1)
if not pending.err and #pending > 0 then return 'held' end
refillIfParking(ready, redis.call('XDEL', ready, entry))
return 'withdrawn'
