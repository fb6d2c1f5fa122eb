#!lua flags=allow-oom
-- note-process.lua: note that a gateway or jobs process lives or has left, with its report.
--   KEYS.processes
--   KEYS.reports      hash; see report.lua
--   KEYS.past         hash; see report.lua
--   ARGV.process      as JSON
--   ARGV.before       as the last call with an answer noted it, or ''
--   ARGV.forMs        for how many ms; 0: it has left, and its report becomes part of the past
--   ARGV.name
--   ARGV.hasReported  '1' if Redis has had a report of the process; else '0'
--   ARGV.remembered   ms for which the report of a silent process waits, because it may come back
--   ARGV.report[]     the fields of `reports` that have changed
--     .field
--     .figures
--   Returns 'noted'
--           'past'   the past has all that the process had reported, so the script took no report
--           'lost'   the server does not have what the process had reported
-- include ../pieces/time.lua
-- include ../pieces/report.lua
local said = 'noted'
if ARGV.hasReported == '1' and redis.call('HEXISTS', KEYS.reports, ARGV.name) == 0 then
  said = redis.call('EXISTS', KEYS.past) == 1 and 'past' or 'lost'
end
if ARGV.before ~= ARGV.process then redis.call('ZREM', KEYS.processes, ARGV.before) end
if ARGV.forMs == '0' then
  redis.call('ZREM', KEYS.processes, ARGV.process)
  foldReport(KEYS.reports, KEYS.past, ARGV.name)
  return said
end
redis.call('ZADD', KEYS.processes, string.format('%d', now + ARGV.forMs), ARGV.process)
for first = ARGV.report.FIRST, said == 'past' and 0 or #ARGV, 2000 do
  redis.call('HSET', KEYS.reports, unpack(ARGV, first, math.min(first + 1999, #ARGV)))
end
-- Few in each call, because a report may have many parts.
local before = string.format('%d', now - tonumber(ARGV.remembered))
for _, forgotten in ipairs(redis.call('ZRANGE', KEYS.processes, '-inf', before, 'BYSCORE', 'LIMIT', 0, 4)) do
  redis.call('ZREM', KEYS.processes, forgotten)
  local name = forgotten:match('"name":"([^"]*)"')
  if name and name ~= ARGV.name then foldReport(KEYS.reports, KEYS.past, name) end
end
return said
