#!lua flags=allow-oom
-- take.lua: take new entries from several ready streams, up to a total. XREADGROUP's own COUNT is
-- for each stream: with many streams it would give a worker more than it has room for, while other
-- workers wait.
--   KEYS     ready streams, in the order in which to read them
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] most entries in all
--   Returns the same as XREADGROUP: {{key, entries}, ...}
local left = tonumber(ARGV[3])
local said = {}
for i = 1, #KEYS do
  local found = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', left, 'STREAMS', KEYS[i], '>')
  if found then
    said[#said + 1] = found[1]
    left = left - #found[1][2]
    if left <= 0 then break end
  end
end
return said
