#!lua flags=allow-oom
-- commit-requests.lua: commit-steps.lua for stateless requests: if this worker still owns the entry, write the outcome and acknowledge.
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3] dead stream
--   then per request:  outcome hash, and, where requests are streams, its log: it lives as long as the outcome
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] dead limit
--   then five per request:  entry, outcome kind, outcome body, outcome TTL ms, reason to set aside ('' if not)
--   Returns one word per request: 'committed' 'superseded' 'already' 'lost', as in commit-steps.lua
local ready, runs, dead = KEYS[1], KEYS[2], KEYS[3]
local group, consumer = ARGV[1], ARGV[2]
local count = (#ARGV - 3) / 5
local stride = (#KEYS - 3) / count
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local function commit(out, log, entry, kind, body, ttl, reason)
  local record = redis.call('HMGET', out, 'kind', 'digest')
  local outcome = record[1]
  if #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 0 then
    if outcome then return 'already' end
    return 'lost'
  end
  local superseded = outcome or not record[2]
  if not superseded then
    redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now)
    redis.call('PEXPIRE', out, ttl)
    if log then redis.call('PEXPIRE', log, ttl) end
    if reason ~= '' then
      redis.call('XADD', dead, 'MAXLEN', '~', ARGV[3], '*', 'sequence', '', 'step', '0', 'reason', reason,
        'runs', (redis.call('HGET', runs, entry) or '0'):match('^%d+'), 'frame', redis.call('XRANGE', ready, entry, entry)[1][2][4])
    end
  end
  redis.call('XACK', ready, group, entry)
  redis.call('XDEL', ready, entry)
  redis.call('HDEL', runs, entry)
  if superseded then return 'superseded' end
  return 'committed'
end

local said = {}
for i = 0, count - 1 do
  local k, a = 3 + i * stride, 3 + i * 5
  said[i + 1] = commit(KEYS[k + 1], stride == 2 and KEYS[k + 2], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end
return said
