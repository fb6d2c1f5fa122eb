#!lua flags=allow-oom
-- announce.lua: note that a worker lives, and the models that it serves. A worker calls this at its
-- start, and again when it finds that it was declared dead or that the registry was wiped. Closes
-- the worker's graves, because the worker now finishes the entries that it still owns.
--   KEYS.workers        zset of the living
--   KEYS.graves         zset of the open graves
--   KEYS.announcements  hash
--   KEYS.connections    hash
--   KEYS.gone           zset of the workers that left or were declared dead
--   KEYS.version        of the registry
--   KEYS.left           set of the gone workers that left by themselves
--   KEYS.reports        hash; see report.lua
--   KEYS.past           hash; see report.lua
--   ARGV.worker
--   ARGV.announcement   JSON
--   ARGV.leaseMs        the worker counts as living for so long without a beat
--   ARGV.connection     the worker's connection or ''
--   ARGV.graves[]       of the worker in its lanes
--   Returns {Redis ms, 1 if the past has all that the worker had reported; else 0}
-- include ../../pieces/time.lua
redis.call('ZADD', KEYS.workers, now + tonumber(ARGV.leaseMs), ARGV.worker)
redis.call('HSET', KEYS.announcements, ARGV.worker, ARGV.announcement)
if ARGV.connection ~= '' then redis.call('HSET', KEYS.connections, ARGV.worker, ARGV.connection) end
redis.call('ZREM', KEYS.gone, ARGV.worker)
redis.call('SREM', KEYS.left, ARGV.worker)
for i = 1, #ARGV.graves do redis.call('ZREM', KEYS.graves, ARGV.graves[i]) end
redis.call('SET', KEYS.version, time[1] .. '.' .. time[2])
local isPast = redis.call('HEXISTS', KEYS.reports, ARGV.worker) == 0 and redis.call('EXISTS', KEYS.past) == 1
return {now, isPast and 1 or 0}
