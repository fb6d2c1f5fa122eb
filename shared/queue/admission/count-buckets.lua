#!lua flags=no-writes,allow-oom
-- count-buckets.lua: count what buckets have beside their queue. Takes two commands for each
-- bucket, one for each model with requests set aside, and two for each model that the caller names.
--   KEYS.buckets[]
--     .noted       the models with requests set aside (set-aside.lua)
--     .events      the events for webhooks (events.lua)
--   ARGV.models  of which to count the hibernating sequences, with a space behind each name
--   Returns {requests set aside, events, {hibernating sequences of each model}}
--     hibernating: workers have brought the states to disk, by the time in the live set that they
--                  have reached (hibernationKeys in keys.ts); -1 if the script may not read it
local dead, events, hibernating = 0, 0, {}
for i = 1, #KEYS.buckets do
  local noted = KEYS.buckets[i].noted
  local tag = noted:match('{[^}]*}')
  local models = redis.pcall('ZRANGE', noted, 0, -1)
  for _, model in ipairs(models.err and {} or models) do
    dead = dead + redis.call('XLEN', 'dead:' .. tag .. ':' .. model)
  end
  events = events + redis.call('XLEN', KEYS.buckets[i].events)
  local place = 0
  for model in ARGV.models:gmatch('%S+') do
    local base = tag .. ':' .. model
    local reached = redis.pcall('GET', 'hibernated:' .. base)
    local isTime = type(reached) == 'string' and tonumber(reached)
    place = place + 1
    local before = hibernating[place] or 0
    if type(reached) == 'table' and reached.err or before < 0 then hibernating[place] = -1
    else hibernating[place] = before + (isTime and redis.call('ZCOUNT', 'live:' .. base, '-inf', reached) or 0) end
  end
end
return {dead, events, hibernating}
