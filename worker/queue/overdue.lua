#!lua flags=allow-oom
-- overdue.lua: tell that the caller is alive, and ask who else has not told for longer than the living let pass, though it holds entries. One
-- worker of a lane at a time gets an answer, so that a large fleet does not look for its dead all at once: whoever asks first, while it goes on asking.
--   KEYS[1] ready stream   KEYS[2] who is told
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] ms of silence that the living do not reach
--   ARGV[4] lease ms: after so much silence any worker may take over anyhow   ARGV[5] ms for which the caller is the one that is told
--   Returns consumers, never the caller
-- Redis notes when a consumer last asked for entries: this asks for those of its own past any id that is ever given. (The very last id means new ones.)
redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', KEYS[1], '18446744073709551615-0')
local said = {}
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local fact = {}
  for i = 1, #row, 2 do fact[row[i]] = row[i + 1] end
  local silent = fact.idle >= tonumber(ARGV[3]) and fact.idle < tonumber(ARGV[4])
  if silent and fact.pending > 0 and fact.name ~= ARGV[2] then said[#said + 1] = fact.name end
end
if #said == 0 then return said end
local told = redis.call('GET', KEYS[2])
if told and told ~= ARGV[2] then return {} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[5])
return said
