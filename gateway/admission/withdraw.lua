#!lua flags=allow-oom
-- withdraw.lua: take a request that has ended out of the queue, so that it needs no worker's slot
-- to be acknowledged. What a worker holds is left to that worker, and so is a step of a sequence:
-- others may wait for it.
--   KEYS[1] ready stream   KEYS[2] outcome hash
--   ARGV[1] group
--   Returns 'withdrawn'   it is not in the queue, by this call or for another reason
--           'held'        a worker has it
--           'left'        it has no outcome yet, or is none that can be withdrawn; nothing is done
local facts = redis.call('HMGET', KEYS[2], 'kind', 'entry')
local entry = facts[2]
if not facts[1] or not entry then return 'left' end
-- An error: no worker has made the group yet, so none has the entry.
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], entry, entry, 1)
if not pending.err and #pending > 0 then return 'held' end
redis.call('XDEL', KEYS[1], entry)
return 'withdrawn'
