#!lua flags=allow-oom
-- due-files.lua: take files whose bytes upkeep has to remove: of lost writers, expired files
-- without users, and dropped files. Other calls do not get a taken file for a while, and get it
-- after that.
--   KEYS.due      when upkeep looks at each file
--   ARGV.most     most files
--   ARGV.againMs  ms until the files come again
--   Returns {tenant, id, tenant, id, …}
local due = KEYS.due
-- include ../pieces/time.lua
local taken = {}
local members = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, ARGV.most)
for i = 1, #members do
  local tenant, id = members[i]:match('^([^:]*):(.*)$')
  local key = '{files}:file:' .. members[i]
  local state = redis.call('HGET', key, 'state')
  local isUsed = redis.call('ZCOUNT', '{files}:users:' .. members[i], string.format('(%.0f', now), '+inf') > 0
  redis.call('ZADD', due, string.format('%d', now + ARGV.againMs), members[i])
  if not state then
    redis.call('ZREM', due, members[i])
  elseif state == 'gone' or not isUsed then
    redis.call('HSET', key, 'state', 'gone')
    redis.call('ZREM', '{files}:all:' .. tenant, id)
    taken[#taken + 1] = tenant
    taken[#taken + 1] = id
  end
end
return taken
