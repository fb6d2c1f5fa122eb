-- overdue.lua: tell that the caller is alive, and perhaps ask who else has not told for longer than the living let pass, though it holds entries.
--   KEYS[1] ready stream
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] whether to ask 0/1   ARGV[4] ms of silence that the living do not reach
--   ARGV[5] lease ms: after so much silence any worker may take over anyhow
--   Returns {how many consumers were heard of within a lease, 0 if not asked, those that are silent, never the caller...}
-- Redis notes when a consumer last asked for entries: this asks for those of its own past any id that is ever given. (The very last id means new ones.)
redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', KEYS[1], '18446744073709551615-0')
if ARGV[3] == '0' then return {0} end
local said = {0}
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local fact = {}
  for i = 1, #row, 2 do fact[row[i]] = row[i + 1] end
  if fact.idle < tonumber(ARGV[5]) then
    said[1] = said[1] + 1
    if fact.idle >= tonumber(ARGV[4]) and fact.pending > 0 and fact.name ~= ARGV[2] then said[#said + 1] = fact.name end
  end
end
return said
