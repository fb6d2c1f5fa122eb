#!lua flags=allow-oom
-- take.lua: take new entries from several ready streams, up to a total. XREADGROUP's own COUNT is
-- for each stream: with many streams it would give a worker more than it has room for, while other
-- workers wait.
--   KEYS.ready[]   the streams, in the order in which to read them
--   ARGV.group
--   ARGV.consumer
--   ARGV.most      most entries in all
--   Returns the same as XREADGROUP: {{key, entries}, ...}
local left = tonumber(ARGV.most)
local said = {}
for i = 1, #KEYS.ready do
  local found = redis.call('XREADGROUP', 'GROUP', ARGV.group, ARGV.consumer, 'COUNT', left,
    'STREAMS', KEYS.ready[i], '>')
  if found then
    said[#said + 1] = found[1]
    left = left - #found[1][2]
    if left <= 0 then break end
  end
end
return said
