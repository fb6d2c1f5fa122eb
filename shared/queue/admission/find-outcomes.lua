#!lua flags=no-writes,allow-oom
-- find-outcomes.lua: which of many requests have ended.
--   KEYS.load       the counts (load.lua)
--   KEYS.records[]  (outcome.lua)
--   Returns per request
--           -2     Redis has no record of the request
--           -1     it has no outcome yet
--           else   it has an outcome: twice the approximate bytes of its body, plus 1 if the
--                  request is brief
-- include ../pieces/load.lua
local names = {}
for i = 1, #KEYS.records do names[i] = KEYS.records[i]:sub(5) end
local open = readOpen(KEYS.load, names)
local said = {}
for i = 1, #KEYS.records do
  local field = open[names[i]]
  local brief = unpackBrief(field or '')
  local kind = (brief or not field) and redis.call('TYPE', KEYS.records[i]).ok or 'hash'
  if kind == 'string' then
    said[i] = 2 * redis.call('STRLEN', KEYS.records[i]) + 1
  elseif kind == 'hash' then
    local record = redis.call('HMGET', KEYS.records[i], 'kind', 'digest')
    said[i] = record[1] and 2 * redis.call('HSTRLEN', KEYS.records[i], 'body') or record[2] and -1 or -2
  else
    said[i] = brief and brief.ended == '0' and -1 or -2
  end
end
return said
