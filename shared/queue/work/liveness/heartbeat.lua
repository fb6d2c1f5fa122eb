#!lua flags=allow-oom
-- heartbeat.lua: a worker process reports that it lives, and reads news of other workers. The
-- script runs thousands of times a second in a large fleet, so every command counts: only a worker
-- that asks gets the facts that not every beat needs.
-- The script writes the beat neither to the append-only file nor to replicas: the beat has no value
-- a second later, and to flush the disk for it would cost many times as much as the beat. So a
-- server that has restarted or taken over knows only old beats. A worker that asks can recognise
-- such a server by the connection that a silent worker noted, because it names the server.
--   KEYS.workers        zset of the living
--   KEYS.graves         zset of the open graves
--   KEYS.announcements  hash
--   KEYS.connections    hash
--   KEYS.reports        hash; see report.lua
--   KEYS.wish           hash; see wish.ts
--   KEYS.logging        see log-setting.ts
--   ARGV.worker
--   ARGV.leaseMs        the worker counts as living for so long without another beat
--   ARGV.silentMs       ms of silence after which to name other workers, or '' to ask for nothing
--   ARGV.news           '' for a worker that has asked lately: no look at what rarely changes
--   ARGV.connection     the worker's connection, if it has changed since the last beat; else ''
--   ARGV.load           what the worker uses and does, or '' for no news; lost as the beat is
--   ARGV.report[]       what the worker has counted: the fields of `reports` that have changed. The
--                       append-only file gets them, so that sums outlive a restart of the server
--     .field
--     .figures
--   Returns Redis ms                 the beat counts; the worker did not ask, and there is no grave
--           {Redis ms, 'unknown'}    the worker is not among the living: it was declared dead, or
--                                    never announced itself, or the registry was wiped. The script
--                                    wrote at most the beat
--           {Redis ms, 'noted', how many workers live, graves, silent, wish, logging}
--             graves: two items per grave, its name and Redis ms of its worker's last sign of life;
--                     up to 16 graves, the newest and some of the rest; mostly none
--             silent: three items per worker that was silent for so long, at most 100 workers: its
--                     name, Redis ms until which it counts as living, its connection or ''
--             wish: the number of the fleet's wish; 0 if there is none, or the worker did not ask
--             logging: how much all processes log, '' if no operator has changed it; nil if the
--                      worker did not ask
local worker, asks = ARGV.worker, ARGV.silentMs ~= ''
-- include ../../pieces/time.lua
local alive = now + tonumber(ARGV.leaseMs)

redis.set_repl(redis.REPL_NONE)
local moved = redis.call('ZADD', KEYS.workers, 'XX', 'CH', alive, worker)
redis.set_repl(redis.REPL_ALL)
-- The score also stays the same if two beats come within a millisecond.
if moved == 0 and not redis.call('ZSCORE', KEYS.workers, worker) then return {now, 'unknown'} end
-- Only a person deletes an announcement alone, so a look from time to time is enough.
if asks and ARGV.news ~= '' and redis.call('HEXISTS', KEYS.announcements, worker) == 0 then return {now, 'unknown'} end
if ARGV.connection ~= '' then redis.call('HSET', KEYS.connections, worker, ARGV.connection) end
if ARGV.load ~= '' then
  redis.set_repl(redis.REPL_NONE)
  redis.call('HSET', KEYS.reports, worker .. ' 0', ARGV.load)
  redis.set_repl(redis.REPL_ALL)
end
-- Lua's unpack takes a limited number of values.
for first = ARGV.report.FIRST, #ARGV, 2000 do
  redis.call('HSET', KEYS.reports, unpack(ARGV, first, math.min(first + 1999, #ARGV)))
end

local buried = redis.call('ZCARD', KEYS.graves)
if buried == 0 and not asks then return now end

local graves = {}
if buried > 16 then
  -- Among many graves that no worker can empty now, the worker must still see a new grave.
  graves = redis.call('ZREVRANGE', KEYS.graves, 0, 7, 'WITHSCORES')
  local seen = {}
  for i = 1, #graves, 2 do seen[graves[i]] = true end
  local some = redis.call('ZRANDMEMBER', KEYS.graves, 8, 'WITHSCORES')
  for i = 1, #some, 2 do
    if not seen[some[i]] then
      graves[#graves + 1] = some[i]
      graves[#graves + 1] = some[i + 1]
    end
  end
elseif buried > 0 then
  graves = redis.call('ZREVRANGE', KEYS.graves, 0, -1, 'WITHSCORES')
end

local silent, wish, logging = {}, '0', false
if asks then
  if ARGV.news ~= '' then logging = redis.call('GET', KEYS.logging) or '' end
  wish = redis.call('HGET', KEYS.wish, '') or '0'
  local rows = redis.call('ZRANGE', KEYS.workers, '-inf', alive - tonumber(ARGV.silentMs), 'BYSCORE',
    'LIMIT', 0, 100, 'WITHSCORES')
  local names = {}
  for i = 1, #rows, 2 do names[#names + 1] = rows[i] end
  local connections = #names > 0 and redis.call('HMGET', KEYS.connections, unpack(names))
  for i = 1, #names do
    silent[#silent + 1] = names[i]
    silent[#silent + 1] = rows[2 * i]
    silent[#silent + 1] = connections[i] or ''
  end
end
return {now, 'noted', redis.call('ZCARD', KEYS.workers), graves, silent, wish, logging}
