#!lua flags=allow-oom
-- bury.lua: strike a worker from the living, and open a grave in each lane in which it leaves
-- entries, so that living workers take them. Callers are a watcher that finds the worker silent, a
-- supervisor that has seen its process end, a worker that leaves, and a worker that finds a stray.
-- A wrong call costs work but no answer: a buried worker can still commit the entries that it owns,
-- and no others.
--   KEYS[1] workers zset   KEYS[2] graves zset   KEYS[3] announcements hash
--   KEYS[4] connections hash   KEYS[5] gone zset   KEYS[6] version   KEYS[7] left set
--   ARGV[1] worker
--   ARGV[2] why: 'silent'   the worker may live: bury it only if it has not beaten since
--                'ended'    its process has ended, or does nothing more
--                'leaving'  it takes no new work and finishes some: it stays among the living
--                'stray'    it has pending entries, and the registry does not know it
--   ARGV[3] Redis ms until which a silent worker counts as living, as the caller has read it
--   ARGV[4] ms for which to remember a gone worker's announcement
--   ARGV[5..] graves
--   Returns 'buried'
--           'lives'   the silent worker has beaten since, or another watcher was faster; or the
--                     stray has joined. The script wrote nothing
--   Also forgets the announcements of workers that went longer ago than ARGV[4].
local worker, why = ARGV[1], ARGV[2]
local alive = tonumber(redis.call('ZSCORE', KEYS[1], worker) or '-1')
if why == 'silent' and alive ~= tonumber(ARGV[3]) or why == 'stray' and alive >= 0 then return 'lives' end

-- include ../../pieces/time.lua
for i = 5, #ARGV do redis.call('ZADD', KEYS[2], now, ARGV[i]) end
redis.call('ZADD', KEYS[5], 'NX', now, worker)
if why == 'leaving' then redis.call('SADD', KEYS[7], worker) end
if why ~= 'leaving' then
  redis.call('ZREM', KEYS[1], worker)
  redis.call('HDEL', KEYS[4], worker)
end
for _, forgotten in ipairs(redis.call('ZRANGE', KEYS[5], '-inf', now - tonumber(ARGV[4]), 'BYSCORE', 'LIMIT', 0, 100)) do
  redis.call('HDEL', KEYS[3], forgotten)
  redis.call('ZREM', KEYS[5], forgotten)
  redis.call('SREM', KEYS[7], forgotten)
end
redis.call('SET', KEYS[6], time[1] .. '.' .. time[2])
return 'buried'
