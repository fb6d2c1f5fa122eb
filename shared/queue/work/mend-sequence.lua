#!lua flags=allow-oom
-- mend-sequence.lua: mend a sequence that counts as busy although its ready entry is gone (deleted
-- from outside). The step's body is lost, so the sequence fails, and its next waiting step becomes
-- ready, to be refused when a worker reads it.
--   KEYS[1] live zset   KEYS[2] sequence hash   KEYS[3] waiting steps
--   ARGV[1] sequence name   ARGV[2] tag of the bucket and model, `{tag}:model`
--   The checkpoints of a sound sequence are renewed, where their TTL would end within a day: its
--   work may wait for long.
--   Returns {'sound'}             nothing to mend
--           {'mended', request}   it failed; the request whose step was lost, by its name,
--                                 needs an outcome
--           {'gone'}              no such sequence; its entry in the live zset was dropped
-- include ../version.lua
-- include ../parking.lua
local live, sequence = KEYS[1], KEYS[2]
local seq = redis.call('HMGET', sequence, 'entry', 'next', 'done', 'start', 'request', 'on', 'at', 'until', 'kept')

local checkpoints = versionKeys(ARGV[2], ARGV[1], seq[7] or '', seq[9] or '')

local function renew()
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local keptUntil = tonumber(seq[8] or '0')
  local renewed = renewVersions(checkpoints, keptUntil, now + DAY)
  if renewed ~= keptUntil then redis.call('HSET', sequence, 'until', string.format('%.0f', renewed)) end
end

if not seq[2] then
  redis.call('ZREM', live, ARGV[1])
  return {'gone'}
end
local ready = 'ready:' .. ARGV[2] .. ':'
local function isQueued(entry, lane)
  if entry == PARKED then return redis.call('HEXISTS', laneKeyOf('parked', lane), seq[5]) == 1 end
  return #redis.call('XRANGE', lane, entry, entry) == 1
end
if not seq[1] or seq[1] == '' or isQueued(seq[1], ready .. seq[6]) then
  renew()
  return {'sound'}
end
local lost = tonumber(seq[3] or '0') + 1
if #checkpoints > 0 then redis.call('UNLINK', unpack(checkpoints)) end
redis.call('HSET', sequence, 'done', lost, 'at', '!', 'kept', '')
if tonumber(seq[4] or '0') <= lost then redis.call('HSET', sequence, 'ended', '1') end
local waiting = redis.call('LPOP', KEYS[3])
if waiting then
  local next = cmsgpack.unpack(waiting)
  redis.call('HSET', sequence, 'request', next[1]:match('^[^|]*'), 'on', next[3],
    'entry', redis.call('XADD', ready .. next[3], '*', 'm', next[1] .. '|!', 'b', next[2]))
else
  redis.call('DEL', sequence)
  redis.call('ZREM', live, ARGV[1])
end
return {'mended', seq[5]}
