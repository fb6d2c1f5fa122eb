#!lua flags=allow-oom
-- read-progress.lua: read the progress of a stream. Its records come as a single string: a worker
-- may take over a hundred streams of a thousand records at once, and to decode each record of a
-- reply by itself would keep the thread busy that beats for the worker.
--   KEYS.log
--   KEYS.record     the outcome hash (outcome.lua)
--   ARGV.takenOver  whether the caller takes the stream over 0/1. If so, the script notes since
--                   when the log has had its length; the note stays until the log grows, also if
--                   another worker takes over next
--   Returns {records, each on a line ('' for none), digest, kind, sealed, wanted,
--            Redis ms since when the log has had its length ('0' without a takeover)}
--           nil in place of a field that the hash lacks
-- include ../../pieces/time.lua
local records = redis.call('LRANGE', KEYS.log, 0, -1)
local facts = redis.call('HMGET', KEYS.record, 'digest', 'kind', 'sealed', 'wanted', 'stands')
local since = '0'
if ARGV.takenOver == '1' and facts[1] then
  local length, noted = (facts[5] or ''):match('^(%d+) (%d+)$')
  if tonumber(length) == #records then
    since = noted
  else
    since = string.format('%d', now)
    redis.call('HSET', KEYS.record, 'stands', #records .. ' ' .. since)
  end
end
return { table.concat(records, '\n'), facts[1], facts[2], facts[3], facts[4], since }
