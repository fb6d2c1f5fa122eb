#!lua flags=no-writes,allow-oom
-- find-outcomes.lua: which of many requests have ended.
--   KEYS the records (outcome.lua), then what is counted (load.lua)
--   Returns per request
--           -2     Redis has no record of it
--           -1     it has no outcome yet
--           else   it has an outcome, whose body takes about this many bytes
-- include ../load.lua
local said, unknown = {}, {}
for i = 1, #KEYS - 1 do
  local record = redis.pcall('HMGET', KEYS[i], 'kind', 'digest')
  if record.err then
    said[i] = redis.call('STRLEN', KEYS[i])
  elseif record[1] then
    said[i] = redis.call('HSTRLEN', KEYS[i], 'body')
  elseif record[2] then
    said[i] = -1
  else
    unknown[#unknown + 1] = KEYS[i]:sub(5)
  end
end
local open = readOpen(KEYS[#KEYS], unknown)
for i = 1, #KEYS - 1 do
  if not said[i] then
    local brief = parseBrief(open[KEYS[i]:sub(5)])
    said[i] = brief and brief.ended == '0' and -1 or -2
  end
end
return said
