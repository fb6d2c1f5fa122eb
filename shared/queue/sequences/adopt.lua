#!lua
-- adopt.lua: let a sequence continue under another version of its model, or other files, which take
-- the states of its present version. Steps that were admitted before keep their pin.
--   KEYS[1] sequences of its model and bucket (sequence.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] present pin of the sequence, `version:digest`   ARGV[4] pin under which it continues
--   Returns 'adopted'  done, by this call or by an earlier call
--           'other'    there is no such sequence, or it has another pin by now
-- include ../pieces/sequence.lua
local seq = sequenceOf(ARGV[1], ARGV[2])
if not seq or seq.pin ~= ARGV[3] and seq.pin ~= ARGV[4] then return 'other' end
if seq.pin == ARGV[3] then
  seq.pin = ARGV[4]
  noteSequence(ARGV[1], ARGV[2], seq)
  writeSequences()
end
return 'adopted'
