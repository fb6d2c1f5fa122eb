-- import.lua: make a new sequence from what was exported. Its checkpoint was written ahead of the
-- script in its transaction, under a name of its own.
--   KEYS[1] sequences of its model and bucket (sequence.lua)   KEYS[2] live zset
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] pin, `version:digest`   ARGV[4] number of its last step, counted from its START
--   ARGV[5] version of its checkpoint; '' where it goes on from its initial state
--   ARGV[6] idle ms   ARGV[7] TTL ms that the checkpoint was written with
--   ARGV[8] live sequence limit
--   Returns 'imported'            done, by this call or by an earlier one
--           'exists'              the id names another live sequence
--           'too-many-sequences'  refused
-- include ../version.lua
-- include ../sequence.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local version, idle = ARGV[5], tonumber(ARGV[6])
local key = versionKey(ARGV[1], ARGV[2], version)
local function refuse(said)
  if version ~= '' then redis.call('UNLINK', key) end
  return said
end

local old = sequenceOf(ARGV[1], ARGV[2])
if old and not hasLapsed(old, now) then
  if version ~= '' and (old.at == version or old.kept:find('=' .. version, 1, true)) then return 'imported' end
  return refuse('exists')
end
if not old and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[8]) then return refuse('too-many-sequences') end

-- What is left of a sequence of this name that has idled out.
local left = old and versionKeys(ARGV[1], ARGV[2], old.at, old.kept) or {}
if #left > 0 then redis.call('UNLINK', unpack(left)) end

local keptUntil = now + tonumber(ARGV[7])
if version ~= '' and keptUntil < now + idle + DAY then
  keptUntil = now + idle + 2 * DAY
  redis.call('PEXPIREAT', key, string.format('%.0f', keptUntil))
end
local seq = newSequence()
seq.next, seq.done, seq.pin, seq.at = tonumber(ARGV[4]), tonumber(ARGV[4]), ARGV[3], version
seq.lapses, seq.keptUntil = now + idle, keptUntil
seq.kept = version == '' and '' or ARGV[4] .. '=' .. version
noteSequence(ARGV[1], ARGV[2], seq)
writeSequences()
redis.call('ZADD', KEYS[2], string.format('%.0f', seq.lapses), ARGV[2])
return 'imported'
