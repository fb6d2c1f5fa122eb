#!lua flags=allow-oom
-- cancel.lua: end a request from outside of a worker: it was cancelled, it expired, or its entry
-- was destroyed. Like give-outcome.lua, but a stream also gets its final record. A worker that
-- holds the request learns of it at its next append or at its commit. One that is parked is taken
-- out of what is parked.
--   KEYS[1] outcome hash   KEYS[2] log   KEYS[3] what is counted (load.lua)
--   ARGV[1] outcome kind   ARGV[2] outcome body
--   ARGV[3] least TTL ms of outcome and log; admission may have asked for a longer one
--   ARGV[4] the rest of the final record: JSON members, without braces; '' if the request is no
--           stream
--   ARGV[5] '1' to leave a stream alone that has a record, else '0'
--   Returns {'given', record}       ended by this call; record is '' if the request is no stream
--           {'known', kind, body}   it has an outcome already, perhaps this one by an earlier call
--           {'sealed'}              its log has the final record; the outcome comes with the commit
--                                   of the worker that holds it
--           {'begun'}               its log has a record, and ARGV[5] is '1'
--           {'unknown'}             there is no such request, or not any more
-- include load.lua
-- include parking.lua
local known = redis.call('HMGET', KEYS[1], 'digest', 'kind', 'body', 'sealed', 'ttl', 'parked', 'pin')
if not known[1] then return {'unknown'} end
if known[2] then return {'known', known[2], known[3] or ''} end
if known[4] then return {'sealed'} end
if ARGV[5] == '1' and redis.call('LLEN', KEYS[2]) > 0 then return {'begun'} end
if known[6] then withdrawParked(KEYS[1], known[7], known[6]) end
local ttl = math.max(tonumber(ARGV[3]), tonumber(known[5] or '0'))
local time = redis.call('TIME')
local changes = {'kind', ARGV[1], 'body', ARGV[2], 'ended', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
local record = ''
if ARGV[4] ~= '' then
  record = string.format('{"index":%d,"choices":[],"final":true,', redis.call('LLEN', KEYS[2])) .. ARGV[4] .. '}'
  redis.call('RPUSH', KEYS[2], record)
  redis.call('PEXPIRE', KEYS[2], ttl)
  changes[7], changes[8] = 'sealed', '1'
end
redis.call('HSET', KEYS[1], unpack(changes))
redis.call('PEXPIRE', KEYS[1], ttl)
letGo(KEYS[3], {KEYS[1]:sub(5)}, true)
return {'given', record}
