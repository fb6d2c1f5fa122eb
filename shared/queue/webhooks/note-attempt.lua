#!lua flags=allow-oom
-- note-attempt.lua: note an attempt to deliver, and what becomes of the delivery. A run that has
-- ended, or was replaced by a newer one, only adds its attempt: two processes may have made one at
-- the same time.
--   KEYS[1] the delivery (begin-delivery.lua)   KEYS[2] deliveries of the tenant
--   ARGV[1] run   ARGV[2] state from now on   ARGV[3] the attempt as JSON; '' where none was made
--   ARGV[4] ms until the next one; '' where none comes   ARGV[5] TTL ms
--   ARGV[6] most attempts kept
--   Returns 'noted', or 'gone' where the delivery is not known any more
local key = KEYS[1]
local run, tries, attempts, state = unpack(redis.call('HMGET', key, 'run', 'tries', 'attempts', 'state'))
if not run then return 'gone' end
if ARGV[3] ~= '' then
  attempts = (attempts or '') .. ARGV[3] .. '\n'
  local _, count = attempts:gsub('\n', '\n')
  while count > tonumber(ARGV[6]) do
    attempts = attempts:gsub('^[^\n]*\n', '', 1)
    count = count - 1
  end
  redis.call('HSET', key, 'attempts', attempts)
end
if run == ARGV[1] and state == 'pending' then
  local next = ''
  if ARGV[4] ~= '' then
    local time = redis.call('TIME')
    next = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4])
  end
  redis.call('HSET', key, 'state', ARGV[2], 'next', next, 'tries', tonumber(tries or 0) + (ARGV[3] ~= '' and 1 or 0))
end
redis.call('PEXPIRE', key, string.format('%.0f', ARGV[5] + (tonumber(ARGV[4]) or 0)))
if redis.call('PTTL', KEYS[2]) < redis.call('PTTL', key) then redis.call('PEXPIRE', KEYS[2], redis.call('PTTL', key)) end
return 'noted'
