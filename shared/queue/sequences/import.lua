-- import.lua: make a new sequence from what was exported. Its checkpoint was written ahead of the
-- script in its transaction, under a name of its own.
--   KEYS[1] sequence hash   KEYS[2] live zset
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   ARGV[3] pin, `version:digest`   ARGV[4] number of its last step, counted from its START
--   ARGV[5] version of its checkpoint; '' where it goes on from its initial state
--   ARGV[6] idle ms   ARGV[7] TTL ms that the checkpoint was written with
--   ARGV[8] live sequence limit
--   Returns 'imported'            done, by this call or by an earlier one
--           'exists'              the id names another live sequence
--           'too-many-sequences'  refused
-- include ../version.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local version, idle = ARGV[5], tonumber(ARGV[6])
local key = versionKey(ARGV[1], ARGV[2], version)
local function refuse(said)
  if version ~= '' then redis.call('UNLINK', key) end
  return said
end

local facts = redis.call('HMGET', KEYS[1], 'next', 'entry', 'lapses', 'at', 'kept')
local at, kept = facts[4] or '', facts[5] or ''
if facts[1] and ((facts[2] or '') ~= '' or tonumber(facts[3] or '0') > now) then
  if version ~= '' and (at == version or kept:find('=' .. version, 1, true)) then return 'imported' end
  return refuse('exists')
end
if not facts[1] and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[8]) then return refuse('too-many-sequences') end

-- What is left of a sequence of this name that has idled out.
redis.call('UNLINK', KEYS[1], unpack(versionKeys(ARGV[1], ARGV[2], at, kept)))

local lapses = string.format('%.0f', now + idle)
local keptUntil = now + tonumber(ARGV[7])
if version ~= '' and keptUntil < now + idle + DAY then
  keptUntil = now + idle + 2 * DAY
  redis.call('PEXPIREAT', key, string.format('%.0f', keptUntil))
end
redis.call('HSET', KEYS[1], 'next', ARGV[4], 'done', ARGV[4], 'start', '1', 'ended', '0', 'pin', ARGV[3], 'at', version,
  'entry', '', 'lapses', lapses, 'until', string.format('%.0f', keptUntil),
  'kept', version == '' and '' or ARGV[4] .. '=' .. version)
redis.call('ZADD', KEYS[2], lapses, ARGV[2])
return 'imported'
