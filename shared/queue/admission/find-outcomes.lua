#!lua flags=no-writes,allow-oom
-- find-outcomes.lua: which of many requests have ended.
--   KEYS the outcome hashes
--   Returns per request
--           -2     Redis has no record of it
--           -1     it has no outcome yet
--           else   it has an outcome, whose body takes this many bytes
local said = {}
for i = 1, #KEYS do
  local record = redis.call('HMGET', KEYS[i], 'kind', 'digest')
  if record[1] then
    said[i] = redis.call('HSTRLEN', KEYS[i], 'body')
  else
    said[i] = record[2] and -1 or -2
  end
end
return said
