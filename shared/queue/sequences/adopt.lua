#!lua
-- adopt.lua: let a sequence continue under another version of its model, or other files, which take
-- the states of its present version. Steps that were admitted before keep their pin.
--   KEYS.sequences  of its model and bucket (sequence.lua)
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.sequence   its name
--   ARGV.from       present pin of the sequence, `version:digest`
--   ARGV.to         pin under which it continues
--   Returns 'adopted'  done, by this call or by an earlier call
--           'other'    there is no such sequence, or it has another pin by now
-- include ../pieces/sequence.lua
local seq = sequenceOf(ARGV.base, ARGV.sequence)
if not seq or seq.pin ~= ARGV.from and seq.pin ~= ARGV.to then return 'other' end
if seq.pin == ARGV.from then
  seq.pin = ARGV.to
  noteSequence(ARGV.base, ARGV.sequence, seq)
  writeSequences()
end
return 'adopted'
