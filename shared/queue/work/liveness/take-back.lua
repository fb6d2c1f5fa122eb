#!lua flags=allow-oom
-- take-back.lua: give a worker entries again that it has given up without an outcome, for example
-- when it was cut off. The worker continues only with entries that it still owns.
--   KEYS.ready      the stream
--   ARGV.group
--   ARGV.consumer
--   ARGV.entries[]
--   Returns the entries that the worker still owns
local taken = {}
for i = 1, #ARGV.entries do
  local id = ARGV.entries[i]
  if #redis.call('XPENDING', KEYS.ready, ARGV.group, id, id, 1, ARGV.consumer) == 1 then
    local entry = redis.call('XCLAIM', KEYS.ready, ARGV.group, ARGV.consumer, 0, id)[1]
    if entry then taken[#taken + 1] = entry end
  end
end
return taken
