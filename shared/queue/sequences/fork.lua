#!lua
-- fork.lua: make a new sequence that continues from another sequence's last or an earlier step. The
-- two are independent from then on. The history of the old sequence stays with it.
--   KEYS[1] sequences of their model and bucket (sequence.lua)   KEYS[2] their live zset; then
--           the live zsets that count together with it
--   ARGV[1] tag of the bucket and model of both, `{tag}:model`   ARGV[2] name of the old sequence
--   ARGV[3] name of the new sequence   ARGV[4] idle ms   ARGV[5] live sequence limit
--   ARGV[6] number of the step, counted from the START; '' for the last step that has ended
--   ARGV[7] key of the change's record   ARGV[8] digest   ARGV[9] TTL ms of the record (once.lua)
--   Returns {'forked', view}          done, by this call or by an earlier call; the new sequence
--           {'asleep', view, version} the checkpoint lies on disk (sleeping-states.ts), and the
--                                     caller has to wake it first; the old sequence
--           {'unknown'}               there is no such sequence, or it is over
--           {'exists'}                the new id names another live sequence
--           {'busy', view} {'future', view} {'gone', view}
--                                     there is no such checkpoint (view.lua); the old sequence
--           {'too-many-sequences'}    refused
--           {'mismatch'}              the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
-- include making.lua
local base, oldName, newName = ARGV[1], ARGV[2], ARGV[3]
local before = answeredBefore(ARGV[7], ARGV[8])
if before then return before end
-- include ../pieces/time.lua

lookUpSequences(base, {oldName, newName})
local old, new = sequenceOf(base, oldName), sequenceOf(base, newName)
if not isThere(old, now) then return {'unknown'} end
local said, done, at = checkpointAfter(base, oldName, old, ARGV[6])
if said ~= 'kept' then return {said, viewOf(base, oldName, old)} end
if new and not hasLapsed(new, now) then
  local isSame = at ~= '' and new.at == at and new.next == done and not isBusy(new)
  return isSame and {'forked', viewOf(base, newName, new)} or {'exists'}
end
if at ~= '' and redis.call('GETRANGE', versionKey(base, oldName, at), 0, #ON_DISK - 1) == ON_DISK then
  return {'asleep', viewOf(base, oldName, old), at}
end
if not new and liveTogether() >= tonumber(ARGV[5]) then return {'too-many-sequences'} end
clearLapsed(base, newName, new, tonumber(ARGV[4]))

local fresh = newSequence()
fresh.next, fresh.done, fresh.start, fresh.pin, fresh.at = done, done, old.start, old.pin, at
fresh.lapses, fresh.keptUntil = now + tonumber(ARGV[4]), now + tonumber(ARGV[4]) + 2 * DAY
if at ~= '' then
  local copy = versionKey(base, newName, at)
  redis.call('COPY', versionKey(base, oldName, at), copy, 'REPLACE')
  redis.call('PEXPIREAT', copy, string.format('%.0f', fresh.keptUntil))
  if old.kept ~= '' then fresh.kept = string.format('%.0f=%s', done, at) end
end
begin(base, newName, fresh)
return answerOnce(ARGV[7], ARGV[8], ARGV[9], {'forked', viewOf(base, newName, fresh)})
