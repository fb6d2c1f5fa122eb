#!lua flags=allow-oom
-- read-progress.lua: read how far a stream has come. Its records come as one string: a worker may
-- take over a hundred streams of a thousand records at once, and decoding each record of a reply by
-- itself would keep the thread busy that beats for the worker.
--   KEYS[1] log   KEYS[2] outcome hash
--   ARGV[1] whether the stream is being taken over 0/1. Then it is noted since when the log has had
--           its length; the note stays, whichever worker takes over next, until the log grows
--   Returns {records, one on each line ('' for none), digest, kind, sealed, wanted,
--            Redis ms since when the log has had its length ('0' unless taken over)}
--           nil where the hash has no such field
-- include ../time.lua
local records = redis.call('LRANGE', KEYS[1], 0, -1)
local facts = redis.call('HMGET', KEYS[2], 'digest', 'kind', 'sealed', 'wanted', 'stands')
local since = '0'
if ARGV[1] == '1' and facts[1] then
  local length, noted = (facts[5] or ''):match('^(%d+) (%d+)$')
  if tonumber(length) == #records then
    since = noted
  else
    since = string.format('%.0f', now)
    redis.call('HSET', KEYS[2], 'stands', #records .. ' ' .. since)
  end
end
return { table.concat(records, '\n'), facts[1], facts[2], facts[3], facts[4], since }
