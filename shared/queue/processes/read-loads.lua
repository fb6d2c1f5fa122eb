#!lua flags=no-writes,allow-oom
-- read-loads.lua: read what workers use and do, and when each has beaten.
--   KEYS.reports    hash; see report.lua
--   KEYS.workers    zset of the living
--   ARGV.workers[]
--   Returns {Redis ms, the load of each worker or '', the living with Redis ms until which they
--           count as living without another beat}
-- include ../pieces/time.lua
local loads = {}
-- Lua's unpack takes a limited number of values.
for first = 1, #ARGV.workers, 2000 do
  local pages = {}
  for i = first, math.min(first + 1999, #ARGV.workers) do pages[#pages + 1] = ARGV.workers[i] .. ' 0' end
  local found = redis.call('HMGET', KEYS.reports, unpack(pages))
  for i = 1, #pages do loads[#loads + 1] = found[i] or '' end
end
return {now, loads, redis.call('ZRANGE', KEYS.workers, 0, -1, 'WITHSCORES')}
