#!lua flags=allow-oom
-- bury.lua: open a grave in each lane in which a worker leaves entries, so that living workers take
-- these entries, and remove the worker from the living. A worker that is still finishing its work
-- (`leaving`) stays among the living. Callers are a watcher that finds the worker silent, a
-- supervisor that has seen its process end, a worker that leaves, and a worker that finds a stray.
-- A wrong call costs work but no answer: a buried worker can still commit the entries that it owns,
-- and no others.
--   KEYS.workers        zset of the living
--   KEYS.graves         zset of the open graves, by Redis ms of the worker's last sign of life
--   KEYS.announcements  hash
--   KEYS.connections    hash
--   KEYS.gone           zset of the workers that left or were declared dead
--   KEYS.version        of the registry
--   KEYS.left           set of the gone workers that left by themselves
--   KEYS.reports        hash; see report.lua
--   KEYS.past           hash; see report.lua
--   ARGV.worker
--   ARGV.why            'silent'   the worker may live: bury it only if it has not beaten since
--                       'ended'    its process has ended, or does nothing more
--                       'leaving'  it takes no new work and finishes some: it stays among the
--                                  living
--                       'stray'    it has pending entries, and the registry does not know it
--   ARGV.aliveUntil     Redis ms until which a silent worker counts as living, as the caller has
--                       read it
--   ARGV.leaseMs        ms from a beat to `aliveUntil`, or 0: then the burial is the last sign of
--                       life
--   ARGV.remembered     ms for which to remember a gone worker's announcement
--   ARGV.graves[]       to open
--   Returns 'buried'
--           'lives'   the silent worker has beaten since, or another watcher was faster; or the
--                     stray has joined. The script wrote nothing
--   Also forgets the announcements of workers that went longer ago than `remembered`.
--   A silent worker may come back with all that it has counted, so its report becomes part of the
--   past only once the worker is forgotten, or its process has ended.
local worker, why = ARGV.worker, ARGV.why
local alive = tonumber(redis.call('ZSCORE', KEYS.workers, worker) or '-1')
if why == 'silent' and alive ~= tonumber(ARGV.aliveUntil) or why == 'stray' and alive >= 0 then return 'lives' end

-- include ../../pieces/time.lua
local lease, seen = tonumber(ARGV.leaseMs), now
if lease > 0 and alive >= 0 then seen = math.min(now, alive - lease) end
-- include ../../pieces/report.lua
for i = 1, #ARGV.graves do redis.call('ZADD', KEYS.graves, seen, ARGV.graves[i]) end
redis.call('ZADD', KEYS.gone, 'NX', now, worker)
if why == 'leaving' then redis.call('SADD', KEYS.left, worker) end
if why ~= 'leaving' then
  redis.call('ZREM', KEYS.workers, worker)
  redis.call('HDEL', KEYS.connections, worker)
end
if why == 'ended' then foldReport(KEYS.reports, KEYS.past, worker) end
-- Few in each call, because a report may have thousands of parts.
local before = now - tonumber(ARGV.remembered)
for _, forgotten in ipairs(redis.call('ZRANGE', KEYS.gone, '-inf', before, 'BYSCORE', 'LIMIT', 0, 4)) do
  redis.call('HDEL', KEYS.announcements, forgotten)
  redis.call('ZREM', KEYS.gone, forgotten)
  redis.call('SREM', KEYS.left, forgotten)
  foldReport(KEYS.reports, KEYS.past, forgotten)
end
redis.call('SET', KEYS.version, time[1] .. '.' .. time[2])
return 'buried'
