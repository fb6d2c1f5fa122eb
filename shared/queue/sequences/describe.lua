#!lua flags=allow-oom,no-writes
-- describe.lua: describe a sequence, and find one of its checkpoints. To look prolongs nothing.
--   KEYS.sequences  of its model and bucket (sequence.lua)
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.sequence   its name
--   ARGV.step       number of the checkpoint's step, counted from the START; '' for the last step
--   Returns {'unknown'}                 there is no such sequence, or it is over
--           {'kept', view, step, version}
--                                       its view (view.lua); the checkpoint's step, counted from
--                                       the START; and the checkpoint's version, '' for the initial
--                                       state
--           {'busy', view} {'future', view} {'gone', view}
--                                       there is no such checkpoint (view.lua)
-- include view.lua
-- include ../pieces/time.lua
local seq = sequenceOf(ARGV.base, ARGV.sequence)
if not isThere(seq, now) then return {'unknown'} end
local said, number, version = checkpointAfter(ARGV.base, ARGV.sequence, seq, ARGV.step)
local view = viewOf(ARGV.base, ARGV.sequence, seq)
if said ~= 'kept' then return {said, view} end
return {'kept', view, number - seq.start + 1, version}
