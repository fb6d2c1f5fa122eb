-- clock.lua: the time in Redis µs, for pieces that seldom need it and are included before time.lua.
local function clockUs()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
