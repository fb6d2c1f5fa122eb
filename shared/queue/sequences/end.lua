#!lua flags=allow-oom
-- end.lua: end a sequence. Steps that were admitted before run to their end, as if the last of them
-- had END.
--   KEYS.sequences  of its model and bucket (sequence.lua)
--   KEYS.live       zset of the model's sequences
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.sequence   its name
--   ARGV.record     key of the change's record (once.lua)
--   ARGV.digest     of the client's order
--   ARGV.ttl        TTL ms of the record
--   Returns {'ended', view}  done, by this call or by an earlier call under its Idempotency-Key;
--                            the view from before the end (view.lua)
--           {'unknown'}      there is no such sequence, or it is over
--           {'mismatch'}     the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
-- include ../pieces/past.lua
local base, name = ARGV.base, ARGV.sequence
local before = answeredBefore(ARGV.record, ARGV.digest)
if before then return before end
-- include ../pieces/time.lua
local seq = sequenceOf(base, name)
if not isThere(seq, now) then return {'unknown'} end
local view = viewOf(base, name, seq)
if isBusy(seq) then
  seq.ended = DELETED
  noteSequence(base, name, seq)
else
  local checkpoints = versionKeys(base, name, seq.at, seq.kept)
  if #checkpoints > 0 then redis.call('UNLINK', unpack(checkpoints)) end
  noteSequence(base, name, nil)
  redis.call('ZREM', KEYS.live, name)
  notePast(base, name, DELETED)
  writePast(now)
end
writeSequences()
return answerOnce(ARGV.record, ARGV.digest, ARGV.ttl, {'ended', view})
