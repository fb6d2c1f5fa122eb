#!lua flags=allow-oom
-- reap-kept.lua: drop results (kept.lua) whose time is over, and the results that go first while
-- all results together exceed their budget. The ends of their requests stay known.
--   KEYS.load       the counts
--   ARGV.mostBytes  most bytes of all results; -1: no limit
--   ARGV.most       most results to drop in this call
--   Returns 1 if more results may be due, else 0
-- include ../pieces/load.lua
-- include ../pieces/kept.lua
local load, most = KEYS.load, tonumber(ARGV.most)
-- include ../pieces/time.lua
local due = redis.pcall('ZRANGE', keptKey(load), '-inf', string.format('%d', now), 'BYSCORE', 'LIMIT', 0, most)
if due.err then return 0 end
local sum = readLoads(load, {'kept'}).kept
if #due > 0 then
  redis.call('ZREM', keptKey(load), unpack(due))
  local members = {}
  for i = 1, #due do members[2 * i - 1], members[2 * i] = due[i], '' end
  dropMembers(load, sum, members)
end
local budget = tonumber(ARGV.mostBytes)
if budget >= 0 and sum.bytes > budget then dropKept(load, sum, budget, most) end
return (#due == most or budget >= 0 and sum.bytes > budget and sum.items > 0) and 1 or 0
