#!lua flags=allow-oom
-- note-attempt.lua: note an attempt to deliver, and the delivery's state after it. A run that has
-- ended, or was replaced by a newer run, only adds its attempt, because two processes may have made
-- an attempt at the same time.
--   KEYS[1] the delivery (begin-delivery.lua)   KEYS[2] deliveries of the tenant
--   KEYS[3] the ended deliveries, by the time of the end   KEYS[4] pending deliveries of all
--   tenants
--   ARGV[1] run   ARGV[2] state from now on   ARGV[3] the attempt as JSON; '' without an attempt
--   ARGV[4] ms until the next attempt; '' if none comes   ARGV[5] TTL ms
--   ARGV[6] most attempts kept   ARGV[7] message   ARGV[8] most ended deliveries
--   ARGV[9] tenant
--   Returns 'noted', or 'gone' if Redis has forgotten the delivery
local MOST_FORGOTTEN = 10
local key, log, ended, message = KEYS[1], KEYS[2], KEYS[3], ARGV[7]
local run, tries, attempts, state = unpack(redis.call('HMGET', key, 'run', 'tries', 'attempts', 'state'))
local member = ARGV[9] .. ':' .. message
if not run then
  redis.call('ZREM', KEYS[4], member)
  return 'gone'
end
if ARGV[3] ~= '' then
  attempts = (attempts or '') .. ARGV[3] .. '\n'
  local _, count = attempts:gsub('\n', '\n')
  while count > tonumber(ARGV[6]) do
    attempts = attempts:gsub('^[^\n]*\n', '', 1)
    count = count - 1
  end
  redis.call('HSET', key, 'attempts', attempts)
end
if run ~= ARGV[1] or state ~= 'pending' then return 'noted' end

-- include ../pieces/time.lua
local next = ARGV[4] ~= '' and string.format('%.0f', now + ARGV[4]) or ''
redis.call('HSET', key, 'state', ARGV[2], 'next', next, 'tries', tonumber(tries or 0) + (ARGV[3] ~= '' and 1 or 0))
local ttl = string.format('%.0f', ARGV[5] + (tonumber(ARGV[4]) or 0))
redis.call('PEXPIRE', key, ttl)
if redis.call('PTTL', log) < tonumber(ttl) then redis.call('PEXPIRE', log, ttl) end
if ARGV[2] == 'pending' then
  redis.call('ZADD', KEYS[4], next, member)
  return 'noted'
end
redis.call('ZREM', KEYS[4], member)

redis.call('ZADD', ended, string.format('%.0f', now), message)
redis.call('PEXPIRE', ended, ttl)
local tooMany = math.min(redis.call('ZCARD', ended) - ARGV[8], MOST_FORGOTTEN)
local oldest = tooMany > 0 and redis.call('ZRANGE', ended, 0, tooMany - 1) or {}
for i = 1, #oldest do
  redis.call('UNLINK', key:sub(1, #key - #message) .. oldest[i])
  redis.call('ZREM', log, oldest[i])
  redis.call('ZREM', ended, oldest[i])
end
return 'noted'
