-- fork.lua: make a new sequence that goes on from where an idle one stands. The two are independent
-- from then on. The history of the old one stays with it.
--   KEYS[1] hash of the old sequence   KEYS[2] hash of the new one   KEYS[3] live zset
--   ARGV[1] tag of the bucket and model of both, `{tag}:model`   ARGV[2] name of the old sequence
--   ARGV[3] name of the new one   ARGV[4] idle ms   ARGV[5] live sequence limit
--   Returns 'forked'              done, by this call or by an earlier one
--           'unknown'             there is no such sequence, or it has idled out
--           'busy'                one of its steps is queued or runs
--           'exists'              the new id names another live sequence
--           'gone'                its checkpoint is gone
--           'too-many-sequences'  refused
-- include ../version.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function read(key)
  return redis.call('HMGET', key, 'next', 'entry', 'lapses', 'done', 'start', 'at', 'kept', 'pin')
end
local function isBusy(facts) return (facts[2] or '') ~= '' end
local function isLive(facts)
  return facts[1] and (isBusy(facts) or tonumber(facts[3] or '0') > now)
end
local function keyOf(name, version) return versionKey(ARGV[1], name, version) end

local old, new = read(KEYS[1]), read(KEYS[2])
if not isLive(old) then return 'unknown' end
if isBusy(old) then return 'busy' end
local at, kept = old[6] or '', ''
if isLive(new) then
  return at ~= '' and new[6] == at and new[1] == old[1] and 'forked' or 'exists'
end
if at ~= '' and redis.call('EXISTS', keyOf(ARGV[2], at)) == 0 then return 'gone' end
if not new[1] and redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[5]) then return 'too-many-sequences' end

-- What is left of a sequence of this name that has idled out.
redis.call('UNLINK', KEYS[2], unpack(versionKeys(ARGV[1], ARGV[3], new[6] or '', new[7] or '')))

local lapses = string.format('%.0f', now + tonumber(ARGV[4]))
local keptUntil = string.format('%.0f', now + tonumber(ARGV[4]) + 2 * DAY)
if at ~= '' then
  redis.call('COPY', keyOf(ARGV[2], at), keyOf(ARGV[3], at), 'REPLACE')
  redis.call('PEXPIREAT', keyOf(ARGV[3], at), keptUntil)
  if (old[7] or '') ~= '' then kept = old[7]:match('(%S+)$') end
end
redis.call('HSET', KEYS[2], 'next', old[1], 'done', old[4], 'start', old[5] or '1', 'ended', '0', 'pin', old[8], 'at', at,
  'entry', '', 'lapses', lapses, 'until', keptUntil, 'kept', kept)
redis.call('ZADD', KEYS[3], lapses, ARGV[3])
return 'forked'
