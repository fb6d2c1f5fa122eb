#!lua flags=no-writes,allow-oom
-- read-logs.lua: what the logs of several requests hold from an index on; where that is nothing, what is known of the request instead.
--   KEYS, two per request:  log, outcome hash
--   ARGV[1] most records of one log   ARGV[2] bytes of one log's records after which no further one is added
--   then one per request:  the index to read from
--   Returns per request
--           {records, more}                              more is 1 if the log goes on
--           {{}, length, known, kind, body, last}        nothing at or after that index: the log's length; known is 0 if there is no such
--                                                        request (any more); kind is '' while it has no outcome; body of an error;
--                                                        last record of a log whose request has an outcome
local most, enough = tonumber(ARGV[1]), tonumber(ARGV[2])

local function read(log, out, from)
  local records = redis.call('LRANGE', log, from, from + most - 1)
  local count = #records
  if count == 0 then
    local facts = redis.call('HMGET', out, 'digest', 'kind', 'body')
    local last = facts[2] and redis.call('LINDEX', log, -1)
    return {records, redis.call('LLEN', log), facts[1] and 1 or 0, facts[2] or '', facts[2] == 'error' and facts[3] or '', last or ''}
  end
  local size, taken = 0, 0
  while taken < count and size < enough do
    taken = taken + 1
    size = size + #records[taken]
  end
  for i = count, taken + 1, -1 do records[i] = nil end
  return {records, taken == most and 1 or (taken < count and 1 or 0)}
end

local pages = {}
for i = 1, #KEYS / 2 do
  pages[i] = read(KEYS[2 * i - 1], KEYS[2 * i], tonumber(ARGV[2 + i]))
end
return pages
