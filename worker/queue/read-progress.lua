#!lua flags=allow-oom
-- read-progress.lua: how far a stream has come. Its records come as one string: a worker may take over a hundred streams of a thousand records at
-- once, and taking each record out of the reply by itself would keep the thread that renews its leases busy.
--   KEYS[1] log   KEYS[2] outcome hash
--   ARGV[1] whether it is being taken over 0/1: then it is noted since when it has stood where it stands, whoever else takes it over before it moves
--   Returns {records, each on a line; '' for none, digest, kind, sealed, wanted, Redis ms since when it stands; '0' unless taken over}
--           nil where the hash has no such field
local records = redis.call('LRANGE', KEYS[1], 0, -1)
local facts = redis.call('HMGET', KEYS[2], 'digest', 'kind', 'sealed', 'wanted', 'stands')
local since = '0'
if ARGV[1] == '1' and facts[1] then
  local length, noted = (facts[5] or ''):match('^(%d+) (%d+)$')
  if tonumber(length) == #records then
    since = noted
  else
    local time = redis.call('TIME')
    since = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    redis.call('HSET', KEYS[2], 'stands', #records .. ' ' .. since)
  end
end
return { table.concat(records, '\n'), facts[1], facts[2], facts[3], facts[4], since }
