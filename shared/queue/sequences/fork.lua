-- fork.lua: make a new sequence that goes on from where an idle one stands. The two are independent
-- from then on. The history of the old one stays with it.
--   KEYS[1] sequences of their model and bucket (sequence.lua)   KEYS[2] live zset
--   ARGV[1] tag of the bucket and model of both, `{tag}:model`   ARGV[2] name of the old sequence
--   ARGV[3] name of the new one   ARGV[4] idle ms   ARGV[5] live sequence limit
--   Returns 'forked'              done, by this call or by an earlier one
--           'unknown'             there is no such sequence, or it has idled out
--           'busy'                one of its steps is queued or runs
--           'exists'              the new id names another live sequence
--           'gone'                its checkpoint is gone
--           'too-many-sequences'  refused
-- include ../version.lua
-- include ../sequence.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local base = ARGV[1]
local function keyOf(name, version) return versionKey(base, name, version) end

lookUpSequences(base, {ARGV[2], ARGV[3]})
local old, new = sequenceOf(base, ARGV[2]), sequenceOf(base, ARGV[3])
if not old or hasLapsed(old, now) then return 'unknown' end
if isBusy(old) then return 'busy' end
local at = old.at
if new and not hasLapsed(new, now) then
  return at ~= '' and new.at == at and new.next == old.next and 'forked' or 'exists'
end
if at ~= '' and redis.call('EXISTS', keyOf(ARGV[2], at)) == 0 then return 'gone' end
if not new and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then return 'too-many-sequences' end

-- What is left of a sequence of this name that has idled out.
local left = new and versionKeys(base, ARGV[3], new.at, new.kept) or {}
if #left > 0 then redis.call('UNLINK', unpack(left)) end

local fresh = newSequence()
fresh.next, fresh.done, fresh.start, fresh.pin, fresh.at = old.next, old.done, old.start, old.pin, at
fresh.lapses, fresh.keptUntil = now + tonumber(ARGV[4]), now + tonumber(ARGV[4]) + 2 * DAY
if at ~= '' then
  redis.call('COPY', keyOf(ARGV[2], at), keyOf(ARGV[3], at), 'REPLACE')
  redis.call('PEXPIREAT', keyOf(ARGV[3], at), string.format('%.0f', fresh.keptUntil))
  fresh.kept = old.kept:match('(%S+)$') or ''
end
noteSequence(base, ARGV[3], fresh)
writeSequences()
redis.call('ZADD', KEYS[2], string.format('%.0f', fresh.lapses), ARGV[3])
return 'forked'
