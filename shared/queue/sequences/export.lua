#!lua flags=allow-oom
-- export.lua: read where an idle sequence stands.
--   KEYS[1] sequences of its model and bucket (sequence.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   Returns {'exported', number, pin, version, checkpoint}
--                         number of its last step, counted from its START; version and checkpoint
--                         are '' where it goes on from its initial state
--           {'unknown'}   there is no such sequence, or it has idled out
--           {'busy'}      one of its steps is queued or runs
--           {'gone'}      its checkpoint is gone
-- include ../version.lua
-- include ../sequence.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seq = sequenceOf(ARGV[1], ARGV[2])
if not seq or hasLapsed(seq, now) then return {'unknown'} end
if isBusy(seq) then return {'busy'} end
local checkpoint = seq.at == '' and '' or redis.call('GET', versionKey(ARGV[1], ARGV[2], seq.at))
if not checkpoint then return {'gone'} end
return {'exported', seq.done - seq.start + 1, seq.pin, seq.at, checkpoint}
