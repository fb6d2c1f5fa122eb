#!lua flags=allow-oom
-- note-attempt.lua: note an attempt to deliver, and the delivery's state after it. A run that has
-- ended, or was replaced by a newer run, only adds its attempt, because two processes may have made
-- an attempt at the same time.
--   KEYS.delivery      begin-delivery.lua has its fields
--   KEYS.deliveries    of the tenant
--   KEYS.ended         the tenant's ended deliveries, by the time of the end
--   KEYS.pending       pending deliveries of all tenants
--   ARGV.run
--   ARGV.state         from now on
--   ARGV.attempt       as JSON; '' without an attempt
--   ARGV.nextIn        ms until the next attempt; '' if none comes
--   ARGV.ttl           ms for which Redis keeps the delivery, beside the ms until the next attempt
--   ARGV.mostAttempts  most attempts kept
--   ARGV.message
--   ARGV.mostEnded     most ended deliveries
--   ARGV.tenant
--   Returns 'noted', or 'gone' if Redis has forgotten the delivery
local MOST_FORGOTTEN = 10
local key, log, ended, message = KEYS.delivery, KEYS.deliveries, KEYS.ended, ARGV.message
local run, tries, attempts, state = unpack(redis.call('HMGET', key, 'run', 'tries', 'attempts', 'state'))
local member = ARGV.tenant .. ':' .. message
if not run then
  redis.call('ZREM', KEYS.pending, member)
  return 'gone'
end
if ARGV.attempt ~= '' then
  attempts = (attempts or '') .. ARGV.attempt .. '\n'
  local _, count = attempts:gsub('\n', '\n')
  while count > tonumber(ARGV.mostAttempts) do
    attempts = attempts:gsub('^[^\n]*\n', '', 1)
    count = count - 1
  end
  redis.call('HSET', key, 'attempts', attempts)
end
if run ~= ARGV.run or state ~= 'pending' then return 'noted' end

-- include ../pieces/time.lua
local next = ARGV.nextIn ~= '' and string.format('%d', now + ARGV.nextIn) or ''
redis.call('HSET', key, 'state', ARGV.state, 'next', next, 'tries', tonumber(tries or 0) + (ARGV.attempt ~= '' and 1 or 0))
local ttl = string.format('%d', ARGV.ttl + (tonumber(ARGV.nextIn) or 0))
redis.call('PEXPIRE', key, ttl)
if redis.call('PTTL', log) < tonumber(ttl) then redis.call('PEXPIRE', log, ttl) end
if ARGV.state == 'pending' then
  redis.call('ZADD', KEYS.pending, next, member)
  return 'noted'
end
redis.call('ZREM', KEYS.pending, member)

redis.call('ZADD', ended, string.format('%d', now), message)
redis.call('PEXPIRE', ended, ttl)
local tooMany = math.min(redis.call('ZCARD', ended) - ARGV.mostEnded, MOST_FORGOTTEN)
local oldest = tooMany > 0 and redis.call('ZRANGE', ended, 0, tooMany - 1) or {}
for i = 1, #oldest do
  redis.call('UNLINK', key:sub(1, #key - #message) .. oldest[i])
  redis.call('ZREM', log, oldest[i])
  redis.call('ZREM', ended, oldest[i])
end
return 'noted'
