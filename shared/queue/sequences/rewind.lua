#!lua flags=allow-oom
-- rewind.lua: let an idle sequence continue from its checkpoint after an earlier step, and forget
-- the later steps.
--   KEYS[1] sequences of its model and bucket (sequence.lua)   KEYS[2] live zset
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] number of the step, counted from the sequence's START   ARGV[4] idle ms
--   ARGV[5] key of the change's record   ARGV[6] digest   ARGV[7] TTL ms of the record (once.lua)
--   Returns {'rewound', view}     its next step is the step after that; a second call finds it so
--           {'unknown'}           there is no such sequence, or it is over
--           {'busy', view}        a step of the sequence is in the queue or runs
--           {'future', view}      the sequence has not come so far
--           {'gone', view}        Redis no longer has the checkpoint
--           {'mismatch'}          the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
local base, name, idle = ARGV[1], ARGV[2], tonumber(ARGV[4])
local before = answeredBefore(ARGV[5], ARGV[6])
if before then return before end
-- include ../pieces/time.lua
local seq = sequenceOf(base, name)
if not isThere(seq, now) then return {'unknown'} end
if isBusy(seq) then return {'busy', viewOf(base, name, seq)} end
local said, wanted, at = checkpointAfter(base, name, seq, ARGV[3])
if said ~= 'kept' then return {said, viewOf(base, name, seq)} end

local stay, gone = {}, {}
for item in seq.kept:gmatch('%S+') do
  local step, version = item:match('^(%d+)=(.+)$')
  if tonumber(step) <= wanted then
    stay[#stay + 1] = item
  else
    gone[#gone + 1] = versionKey(base, name, version)
  end
end
local kept = table.concat(stay, ' ')
seq.keptUntil = renewVersions(base, name, at, kept, seq.keptUntil, now + idle + DAY)
seq.next, seq.done, seq.at, seq.kept, seq.lapses = wanted, wanted, at, kept, now + idle
noteSequence(base, name, seq)
writeSequences()
redis.call('ZADD', KEYS[2], string.format('%.0f', seq.lapses), name)
if #gone > 0 then redis.call('UNLINK', unpack(gone)) end
return answerOnce(ARGV[5], ARGV[6], ARGV[7], {'rewound', viewOf(base, name, seq)})
