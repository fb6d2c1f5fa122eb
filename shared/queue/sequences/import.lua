#!lua
-- import.lua: make a new sequence from an export. The transaction has written its checkpoint before
-- the script, under a name of its own.
--   KEYS[1] sequences of its model and bucket (sequence.lua)   KEYS[2] its live zset; then the
--           live zsets that count together with it
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] pin, `version:digest`   ARGV[4] number of its last step, counted from its START
--   ARGV[5] version of its checkpoint; '' if it continues from its initial state
--   ARGV[6] idle ms   ARGV[7] TTL ms of the checkpoint from the transaction
--   ARGV[8] live sequence limit
--   ARGV[9] key of the change's record   ARGV[10] digest   ARGV[11] TTL ms of the record (once.lua)
--   Returns {'imported', view}      done, by this call or by an earlier call
--           {'exists'}              the id names another live sequence
--           {'too-many-sequences'}  refused
--           {'mismatch'}            the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
-- include making.lua
local base, name, version, idle = ARGV[1], ARGV[2], ARGV[5], tonumber(ARGV[6])
-- include ../pieces/time.lua
local key = versionKey(base, name, version)
local function without(answer)
  if version ~= '' then redis.call('UNLINK', key) end
  return answer
end

local old = sequenceOf(base, name)
local isLive = old and not hasLapsed(old, now)
if isLive and version ~= '' and (old.at == version or old.kept:find('=' .. version, 1, true)) then
  return {'imported', viewOf(base, name, old)}
end
local before = answeredBefore(ARGV[9], ARGV[10])
if before then return without(before) end
if isLive then return without({'exists'}) end
if not old and liveTogether() >= tonumber(ARGV[8]) then return without({'too-many-sequences'}) end
clearLapsed(base, name, old, idle)

local keptUntil = now + tonumber(ARGV[7])
if version ~= '' and keptUntil < now + idle + DAY then
  keptUntil = now + idle + 2 * DAY
  redis.call('PEXPIREAT', key, string.format('%.0f', keptUntil))
end
local seq = newSequence()
seq.next, seq.done, seq.pin, seq.at = tonumber(ARGV[4]), tonumber(ARGV[4]), ARGV[3], version
seq.lapses, seq.keptUntil = now + idle, keptUntil
seq.kept = version == '' and '' or ARGV[4] .. '=' .. version
begin(base, name, seq)
return answerOnce(ARGV[9], ARGV[10], ARGV[11], {'imported', viewOf(base, name, seq)})
