#!lua
-- fork.lua: make a new sequence that continues from another sequence's last or an earlier step. The
-- two are independent from then on. The history of the old sequence stays with it.
--   KEYS.sequences  of their model and bucket (sequence.lua)
--   KEYS.live       zset of the model's sequences
--   KEYS.others[]   the live zsets that count together with it (making.lua)
--   ARGV.base       tag of the bucket and model of both, `{tag}:model`
--   ARGV.sequence   name of the old sequence
--   ARGV.fork       name of the new sequence
--   ARGV.idle       ms for which a sequence lives between its steps
--   ARGV.most       most live sequences
--   ARGV.mostOfTenant
--                   most live sequences of the tenant, of all models; '' for no limit
--   ARGV.step       number of the step, counted from the START; '' for the last step that has ended
--   ARGV.record     key of the change's record (once.lua)
--   ARGV.digest     of the client's order
--   ARGV.ttl        TTL ms of the record
--   Returns {'forked', view}          done, by this call or by an earlier call; the new sequence
--           {'asleep', view, version} the checkpoint lies on disk (sleeping-states.ts), and the
--                                     caller has to wake it first; the old sequence
--           {'unknown'}               there is no such sequence, or it is over
--           {'exists'}                the new id names another live sequence
--           {'busy', view} {'future', view} {'gone', view}
--                                     there is no such checkpoint (view.lua); the old sequence
--           {'too-many-sequences'} {'too-many-of-tenant'}
--                                     refused
--           {'mismatch'}              the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
-- include making.lua
local base, oldName, newName = ARGV.base, ARGV.sequence, ARGV.fork
local before = answeredBefore(ARGV.record, ARGV.digest)
if before then return before end
-- include ../pieces/time.lua

lookUpSequences(base, {oldName, newName})
local old, new = sequenceOf(base, oldName), sequenceOf(base, newName)
if not isThere(old, now) then return {'unknown'} end
local said, done, at = checkpointAfter(base, oldName, old, ARGV.step)
if said ~= 'kept' then return {said, viewOf(base, oldName, old)} end
if new and not hasLapsed(new, now) then
  local isSame = at ~= '' and new.at == at and new.next == done and not isBusy(new)
  return isSame and {'forked', viewOf(base, newName, new)} or {'exists'}
end
if at ~= '' and redis.call('GETRANGE', versionKey(base, oldName, at), 0, #ON_DISK - 1) == ON_DISK then
  return {'asleep', viewOf(base, oldName, old), at}
end
local tooMany = not new and refusesAnother(base, newName:match('^[^:]*'))
if tooMany then return {tooMany} end
clearLapsed(base, newName, new, tonumber(ARGV.idle))

local fresh = newSequence()
fresh.next, fresh.done, fresh.start, fresh.pin, fresh.at = done, done, old.start, old.pin, at
fresh.lapses, fresh.keptUntil = now + tonumber(ARGV.idle), now + tonumber(ARGV.idle) + 2 * DAY
if at ~= '' then
  local copy = versionKey(base, newName, at)
  redis.call('COPY', versionKey(base, oldName, at), copy, 'REPLACE')
  redis.call('PEXPIREAT', copy, string.format('%d', fresh.keptUntil))
  if old.kept ~= '' then fresh.kept = TEXT.checkpoint{step = done, version = at} end
end
begin(base, newName, fresh)
return answerOnce(ARGV.record, ARGV.digest, ARGV.ttl, {'forked', viewOf(base, newName, fresh)})
