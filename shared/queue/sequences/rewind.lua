#!lua flags=allow-oom
-- rewind.lua: let an idle sequence go on from the checkpoint that it had after an earlier step.
-- What came later is forgotten.
--   KEYS[1] sequences of its model and bucket (sequence.lua)   KEYS[2] live zset
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] number of the step, counted from the sequence's START   ARGV[4] idle ms
--   Returns {'rewound'}           its next step is the one after that; a second call finds it so
--           {'unknown'}           there is no such sequence, or it has idled out
--           {'busy'}              one of its steps is queued or runs
--           {'not-kept', oldest, newest}
--                                 the checkpoint is not kept; those of these steps are, and 0
--                                 stands for none. A step without effect left the one before it
-- include ../version.lua
-- include ../sequence.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local idle = tonumber(ARGV[4])
local seq = sequenceOf(ARGV[1], ARGV[2])
if not seq or hasLapsed(seq, now) then return {'unknown'} end
if isBusy(seq) then return {'busy'} end

local start, done, kept = seq.start, seq.done, seq.kept
local wanted = start + tonumber(ARGV[3]) - 1
local stay, gone, oldest, at = {}, {}, false, false
for item in kept:gmatch('%S+') do
  local step, version = item:match('^(%d+)=(.+)$')
  oldest = oldest or tonumber(step)
  if tonumber(step) <= wanted then
    stay[#stay + 1], at = item, version
  else
    gone[#gone + 1] = versionKey(ARGV[1], ARGV[2], version)
  end
end
if not at or wanted > done or redis.call('EXISTS', versionKey(ARGV[1], ARGV[2], at)) == 0 then
  return {'not-kept', oldest and oldest - start + 1 or 0, oldest and done - start + 1 or 0}
end
kept = table.concat(stay, ' ')
seq.keptUntil = renewVersions(ARGV[1], ARGV[2], at, kept, seq.keptUntil, now + idle + DAY)
seq.next, seq.done, seq.at, seq.kept, seq.lapses = wanted, wanted, at, kept, now + idle
noteSequence(ARGV[1], ARGV[2], seq)
writeSequences()
redis.call('ZADD', KEYS[2], string.format('%.0f', seq.lapses), ARGV[2])
if #gone > 0 then redis.call('UNLINK', unpack(gone)) end
return {'rewound'}
