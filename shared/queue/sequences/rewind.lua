#!lua flags=allow-oom
-- rewind.lua: let an idle sequence continue from its checkpoint after an earlier step, and forget
-- the later steps.
--   KEYS.sequences  of its model and bucket (sequence.lua)
--   KEYS.live       zset of the model's sequences
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.sequence   its name
--   ARGV.step       number of the step, counted from the sequence's START
--   ARGV.idle       ms for which a sequence lives between its steps
--   ARGV.record     key of the change's record (once.lua)
--   ARGV.digest     of the client's order
--   ARGV.ttl        TTL ms of the record
--   Returns {'rewound', view}     its next step is the step after that; a second call finds it so
--           {'unknown'}           there is no such sequence, or it is over
--           {'busy', view}        a step of the sequence is in the queue or runs
--           {'future', view}      the sequence has not come so far
--           {'gone', view}        Redis no longer has the checkpoint
--           {'mismatch'}          the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
local base, name, idle = ARGV.base, ARGV.sequence, tonumber(ARGV.idle)
local before = answeredBefore(ARGV.record, ARGV.digest)
if before then return before end
-- include ../pieces/time.lua
local seq = sequenceOf(base, name)
if not isThere(seq, now) then return {'unknown'} end
if isBusy(seq) then return {'busy', viewOf(base, name, seq)} end
local said, wanted, at = checkpointAfter(base, name, seq, ARGV.step)
if said ~= 'kept' then return {said, viewOf(base, name, seq)} end

local stay, gone = {}, {}
for item in seq.kept:gmatch('%S+') do
  local step, version = item:match(PATTERN.checkpoint(step, version))
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
redis.call('ZADD', KEYS.live, string.format('%d', seq.lapses), name)
if #gone > 0 then redis.call('UNLINK', unpack(gone)) end
return answerOnce(ARGV.record, ARGV.digest, ARGV.ttl, {'rewound', viewOf(base, name, seq)})
