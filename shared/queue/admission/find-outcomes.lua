#!lua flags=no-writes,allow-oom
-- find-outcomes.lua: which of many requests have ended.
--   KEYS the records (outcome.lua), then the counts (load.lua)
--   Returns per request
--           -2     Redis has no record of the request
--           -1     it has no outcome yet
--           else   it has an outcome: twice the approximate bytes of its body, plus 1 if the
--                  request is brief
-- include ../pieces/load.lua
local names = {}
for i = 1, #KEYS - 1 do names[i] = KEYS[i]:sub(5) end
local open = readOpen(KEYS[#KEYS], names)
local said = {}
for i = 1, #KEYS - 1 do
  local field = open[names[i]]
  local brief = parseBrief(field)
  local kind = (brief or not field) and redis.call('TYPE', KEYS[i]).ok or 'hash'
  if kind == 'string' then
    said[i] = 2 * redis.call('STRLEN', KEYS[i]) + 1
  elseif kind == 'hash' then
    local record = redis.call('HMGET', KEYS[i], 'kind', 'digest')
    said[i] = record[1] and 2 * redis.call('HSTRLEN', KEYS[i], 'body') or record[2] and -1 or -2
  else
    said[i] = brief and brief.ended == '0' and -1 or -2
  end
end
return said
