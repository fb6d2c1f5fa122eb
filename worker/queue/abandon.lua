#!lua flags=allow-oom
-- abandon.lua: let the leases of a worker run out now, unless it has been heard of lately. For whoever takes it for dead: its supervisor, who has seen
-- it end; another worker, who finds it without a connection; or the worker itself, when it leaves and has stopped all that it did with
-- them. To be wrong costs work and no answer: what it still computes is refused unless it owns the entry, and until somebody has taken the
-- entry over a renewal has it back.
--   KEYS[1] ready stream
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] idle ms to pretend, at least a lease   ARGV[4] ms for which nothing may have been heard of it
--   Returns how many entries any worker may take over now, of those that it might not before
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local fact = {}
  for i = 1, #row, 2 do fact[row[i]] = row[i + 1] end
  if fact.name == ARGV[2] and fact.idle < tonumber(ARGV[4]) then return 0 end
end
local entries = {}
for _, row in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1000, ARGV[2])) do
  if row[3] < tonumber(ARGV[3]) then entries[#entries + 1] = row[1] end
end
for _, entry in ipairs(entries) do
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, entry, 'IDLE', ARGV[3], 'JUSTID')
end
return #entries
