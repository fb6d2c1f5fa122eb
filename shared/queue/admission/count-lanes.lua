#!lua flags=no-writes,allow-oom
-- count-lanes.lua: count what lanes hold, five commands for each.
--   KEYS.lanes[]
--     .ready   stream
--     .parked  hash
--     .live    zset of the sequences, also of those that have expired and are still there
--     .dead    stream of the requests set aside, of all versions of the model
--   ARGV.group
--   Returns for each lane {waiting requests, requests that workers have, live, dead}
local counts = {}
for i = 1, #KEYS.lanes do
  local ready = KEYS.lanes[i].ready
  -- An error: no worker has made the group yet.
  local pending = redis.pcall('XPENDING', ready, ARGV.group)
  local running = not pending.err and pending[1] or 0
  local waiting = redis.call('XLEN', ready) - running + redis.call('HLEN', KEYS.lanes[i].parked)
  counts[i] = {waiting, running, redis.call('ZCARD', KEYS.lanes[i].live), redis.call('XLEN', KEYS.lanes[i].dead)}
end
return counts
