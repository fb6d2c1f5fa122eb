#!lua
-- import.lua: make a new sequence from an export. The transaction has written its checkpoint before
-- the script, under a name of its own.
--   KEYS.sequences  of its model and bucket (sequence.lua)
--   KEYS.live       zset of the model's sequences
--   KEYS.others[]   the live zsets that count together with it (making.lua)
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.sequence   its name
--   ARGV.pin        `version:digest`
--   ARGV.step       number of its last step, counted from its START
--   ARGV.version    of its checkpoint; '' if it continues from its initial state
--   ARGV.idle       ms for which a sequence lives between its steps
--   ARGV.kept       TTL ms of the checkpoint from the transaction
--   ARGV.most       most live sequences
--   ARGV.mostOfTenant
--                   most live sequences of the tenant, of all models; '' for no limit
--   ARGV.record     key of the change's record (once.lua)
--   ARGV.digest     of the client's order
--   ARGV.ttl        TTL ms of the record
--   Returns {'imported', view}      done, by this call or by an earlier call
--           {'exists'}              the id names another live sequence
--           {'too-many-sequences'} {'too-many-of-tenant'}
--                                   refused
--           {'mismatch'}            the Idempotency-Key belongs to another change
-- include view.lua
-- include once.lua
-- include making.lua
local base, name, version, idle = ARGV.base, ARGV.sequence, ARGV.version, tonumber(ARGV.idle)
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
local before = answeredBefore(ARGV.record, ARGV.digest)
if before then return without(before) end
if isLive then return without({'exists'}) end
local tooMany = not old and refusesAnother(base, name:match('^[^:]*'))
if tooMany then return without({tooMany}) end
clearLapsed(base, name, old, idle)

local keptUntil = now + tonumber(ARGV.kept)
if version ~= '' and keptUntil < now + idle + DAY then
  keptUntil = now + idle + 2 * DAY
  redis.call('PEXPIREAT', key, string.format('%d', keptUntil))
end
local seq = newSequence()
seq.next, seq.done, seq.pin, seq.at = tonumber(ARGV.step), tonumber(ARGV.step), ARGV.pin, version
seq.lapses, seq.keptUntil = now + idle, keptUntil
seq.kept = version == '' and '' or TEXT.checkpoint{step = ARGV.step, version = version}
begin(base, name, seq)
return answerOnce(ARGV.record, ARGV.digest, ARGV.ttl, {'imported', viewOf(base, name, seq)})
