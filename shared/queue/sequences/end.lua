#!lua flags=allow-oom
-- end.lua: end a sequence. Steps that were admitted before run to their end, as if the last of them
-- had END.
--   KEYS[1] sequences of its model and bucket (sequence.lua)   KEYS[2] live zset
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] key of the change's record   ARGV[4] digest   ARGV[5] TTL ms of the record (once.lua)
--   Returns {'ended', view}  done, by this call or by an earlier call under its Idempotency-Key;
--                            the view from before the end (view.lua)
--           {'unknown'}      there is no such sequence, or it is over
--           {'mismatch'}     the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
-- include ../pieces/past.lua
local base, name = ARGV[1], ARGV[2]
local before = answeredBefore(ARGV[3], ARGV[4])
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
  redis.call('ZREM', KEYS[2], name)
  notePast(base, name, DELETED)
  writePast(now)
end
writeSequences()
return answerOnce(ARGV[3], ARGV[4], ARGV[5], {'ended', view})
