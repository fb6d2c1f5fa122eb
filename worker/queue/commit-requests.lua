#!lua flags=allow-oom
-- commit-requests.lua: commit-steps.lua for stateless requests: if this worker still owns the entry, write the outcome and acknowledge.
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3] dead stream
--   then per request:  outcome hash, and, where requests are streams, its log: it lives as long as the outcome
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] dead limit   ARGV[4] ARGV[5] the oldest and the newest entry
--   then five per request:  entry, outcome kind, outcome body, outcome TTL ms, reason to set aside ('' if not)
--   Returns one word per request: 'committed' 'superseded' 'already' 'lost', as in commit-steps.lua
local ready, runs, dead = KEYS[1], KEYS[2], KEYS[3]
local group, consumer = ARGV[1], ARGV[2]
local count = (#ARGV - 5) / 5
local stride = (#KEYS - 3) / count
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

-- One look for all; what this worker holds beside them may lie in between.
local most = 2 * count + 64
local owned = {}
local rows = redis.call('XPENDING', ready, group, ARGV[4], ARGV[5], most, consumer)
for i = 1, #rows do owned[rows[i][1]] = true end
local function isOwned(entry)
  return owned[entry] or #rows == most and #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 1
end

local forgotten = {}

local function commit(out, log, entry, kind, body, ttl, reason)
  local record = redis.call('HMGET', out, 'kind', 'digest')
  local outcome = record[1]
  if not isOwned(entry) then
    if outcome then return 'already' end
    return 'lost'
  end
  forgotten[#forgotten + 1] = entry
  if outcome or not record[2] then return 'superseded' end
  redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now)
  redis.call('PEXPIRE', out, ttl)
  if log then redis.call('PEXPIRE', log, ttl) end
  if reason ~= '' then
    redis.call('XADD', dead, 'MAXLEN', '~', ARGV[3], '*', 'sequence', '', 'step', '0', 'reason', reason,
      'runs', (redis.call('HGET', runs, entry) or '0'):match('^%d+'), 'frame', redis.call('XRANGE', ready, entry, entry)[1][2][4])
  end
  return 'committed'
end

local said = {}
for i = 0, count - 1 do
  local k, a = 3 + i * stride, 5 + i * 5
  said[i + 1] = commit(KEYS[k + 1], stride == 2 and KEYS[k + 2], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end
if #forgotten > 0 then
  redis.call('XACK', ready, group, unpack(forgotten))
  redis.call('XDEL', ready, unpack(forgotten))
  redis.call('HDEL', runs, unpack(forgotten))
end
return said
