#!lua flags=allow-oom
-- heartbeat.lua: a worker process says that it lives, and hears what it must know of the others.
-- It runs thousands of times a second in a large fleet, so every command counts: what need not be
-- told at each beat is told to who asks.
-- The beat itself is written neither to the append-only file nor to replicas: it is worth nothing
-- a second later, and flushing the disk for it would cost many times what the beat does. A server
-- that has restarted or taken over therefore knows old beats only. A worker that asks can tell by
-- the connection that a silent worker noted, which names the server.
--   KEYS[1] workers zset   KEYS[2] graves zset   KEYS[3] announcements hash
--   KEYS[4] connections hash
--   ARGV[1] worker   ARGV[2] lease ms: it counts as living for so long without another beat
--   ARGV[3] ms of silence after which others are named, or '' to ask for nothing
--   ARGV[4] its connection, where it is another one than at the last beat; else ''
--   Returns Redis ms                 the beat was noted; nobody asked, and there is no grave
--           {Redis ms, 'unknown'}    it is not among the living: it was declared dead, or never
--                                    announced, or the registry was wiped. Nothing was written
--           {Redis ms, 'noted', how many workers live, graves, silent}
--             graves: up to 16, the newest and some of the others; mostly none
--             silent: three items per worker that was silent for so long, at most 100 workers: its
--                     name, Redis ms until which it counts as living, its connection or ''
local worker, asks = ARGV[1], ARGV[3] ~= ''
-- include ../time.lua
local alive = now + tonumber(ARGV[2])

redis.set_repl(redis.REPL_NONE)
local moved = redis.call('ZADD', KEYS[1], 'XX', 'CH', alive, worker)
redis.set_repl(redis.REPL_ALL)
-- The score stays as it was, too, when two beats come within one millisecond.
if moved == 0 and not redis.call('ZSCORE', KEYS[1], worker) then return {now, 'unknown'} end
-- Only outside interference deletes an announcement alone. It is enough to look now and then.
if asks and redis.call('HEXISTS', KEYS[3], worker) == 0 then return {now, 'unknown'} end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[4], worker, ARGV[4]) end

local buried = redis.call('ZCARD', KEYS[2])
if buried == 0 and not asks then return now end

local graves = {}
if buried > 16 then
  -- Among many graves that nobody can empty now, a new one must not be overlooked.
  graves = redis.call('ZREVRANGE', KEYS[2], 0, 7)
  local seen = {}
  for _, grave in ipairs(graves) do seen[grave] = true end
  for _, grave in ipairs(redis.call('ZRANDMEMBER', KEYS[2], 8)) do
    if not seen[grave] then graves[#graves + 1] = grave end
  end
elseif buried > 0 then
  graves = redis.call('ZREVRANGE', KEYS[2], 0, -1)
end

local silent = {}
if asks then
  local rows = redis.call('ZRANGE', KEYS[1], '-inf', alive - tonumber(ARGV[3]), 'BYSCORE', 'LIMIT', 0, 100, 'WITHSCORES')
  local names = {}
  for i = 1, #rows, 2 do names[#names + 1] = rows[i] end
  local connections = #names > 0 and redis.call('HMGET', KEYS[4], unpack(names))
  for i = 1, #names do
    silent[#silent + 1] = names[i]
    silent[#silent + 1] = rows[2 * i]
    silent[#silent + 1] = connections[i] or ''
  end
end
return {now, 'noted', redis.call('ZCARD', KEYS[1]), graves, silent}
