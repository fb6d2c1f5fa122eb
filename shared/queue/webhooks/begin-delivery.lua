#!lua
-- begin-delivery.lua: note that a jobs process has to deliver a message to a webhook, or to replay
-- a delivery. A delivery runs once for its event and once for each replay. The outbox entry of the
-- event gives the first run its name, and the client's request for a replay a later one.
--   KEYS.deliveries  of the tenant
--   KEYS.delivery    a hash:
--                      event, job, webhook, target, body
--                                the message and its receiver; never changed. `target` is for a
--                                job's own webhook, and `webhook` is '' then
--                      created   Redis ms
--                      state     pending, delivered or failed
--                      run       the newest run
--                      tries     how many attempts the newest run has had
--                      attempts  each as JSON, a line each; the newest
--                      next      Redis ms of the next attempt, or ''
--                      and the fields of note-replay.lua
--   KEYS.ended       the tenant's ended deliveries, by the time of the end
--   KEYS.pending     pending deliveries of all tenants
--   KEYS.ofJob[]     messages about the job; only if the event is about a job
--   ARGV.message
--   ARGV.run
--   ARGV.ttl         ms for which Redis keeps the delivery
--   ARGV.most        most deliveries, pending or not
--   ARGV.tenant
--   ARGV.content[]   of the message; a replay has none:
--     .event
--     .job
--     .webhook
--     .target
--     .body
--   Returns {'begun', message, run, message, run, …}   a process has to make the run, which this
--                                                      call or an earlier one has begun. Then the
--                                                      pending runs that this call has ended:
--                                                      replaced runs, and the oldest of too many
--           {'ended'}   the run has ended
--           {'unknown'}  there is no such delivery to replay
local log, key, ended, pending = KEYS.deliveries, KEYS.delivery, KEYS.ended, KEYS.pending
local message, run, ttl, tenant = ARGV.message, ARGV.run, ARGV.ttl, ARGV.tenant
-- include ../pieces/time.lua
local now = string.format('%d', now)
local known = redis.call('HMGET', key, 'run', 'state')
local reply = {'begun'}

local function noteEnded(name, theRun, state)
  if state ~= 'pending' then return end
  reply[#reply + 1] = name
  reply[#reply + 1] = theRun
end

local function keyOf(other) return key:sub(1, #key - #message) .. other end

local function keepKnown()
  redis.call('PEXPIRE', key, ttl)
  if redis.call('PTTL', log) < tonumber(ttl) then redis.call('PEXPIRE', log, ttl) end
end

local function forget(messages)
  for i = 1, #messages do
    local other = redis.call('HMGET', keyOf(messages[i]), 'run', 'state')
    noteEnded(messages[i], other[1], other[2])
    redis.call('UNLINK', keyOf(messages[i]))
    redis.call('ZREM', log, messages[i])
    redis.call('ZREM', ended, messages[i])
    redis.call('ZREM', pending, tenant .. ':' .. messages[i])
  end
end

if known[1] then
  if known[1] == run then return {known[2] == 'pending' and 'begun' or 'ended'} end
  if #ARGV.content > 0 then return {'ended'} end
  noteEnded(message, known[1], known[2])
  redis.call('HSET', key, 'run', run, 'state', 'pending', 'tries', '0', 'next', now)
  redis.call('ZREM', ended, message)
  redis.call('ZADD', pending, now, tenant .. ':' .. message)
  keepKnown()
  return reply
end
if #ARGV.content == 0 then return {'unknown'} end
redis.call('HSET', key, 'run', run, 'state', 'pending', 'tries', '0', 'next', now, 'created', now, 'attempts', '',
  'event', ARGV.content[1].event, 'job', ARGV.content[1].job, 'webhook', ARGV.content[1].webhook,
  'target', ARGV.content[1].target, 'body', ARGV.content[1].body)
redis.call('ZADD', log, now, message)
redis.call('ZADD', pending, now, tenant .. ':' .. message)
if KEYS.ofJob[1] then
  redis.call('ZADD', KEYS.ofJob[1], now, message)
  redis.call('PEXPIRE', KEYS.ofJob[1], ttl)
end
keepKnown()
-- Forget the oldest: deliveries whose time has passed, and the deliveries beyond the limit.
local oldest, passed = redis.call('ZRANGE', log, 0, 9), {}
for i = 1, #oldest do
  if redis.call('EXISTS', keyOf(oldest[i])) == 0 then passed[#passed + 1] = oldest[i] end
end
forget(passed)
forget(redis.call('ZRANGE', log, 0, -1 - ARGV.most))
return reply
