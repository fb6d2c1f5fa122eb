#!lua flags=allow-oom
-- begin-alone.lua: count a run of a suspect before it starts: a step whose earlier attempt ended without a commit, now run by itself.
-- Runs are counted, not deliveries: entries that only waited in a dead worker's hands never ran, and must not be convicted.
--   KEYS[1] ready stream   KEYS[2] runs hash
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] entry   ARGV[4] runs allowed   ARGV[5] name of this run, another for each
--   Returns 'run'      counted, once however often this run is announced: a lost reply must not convict; run it now
--           'poison'   all allowed runs ended without a commit
--           'lost'     not ours any more
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2]) == 0 then return 'lost' end
local runs, last = (redis.call('HGET', KEYS[2], ARGV[3]) or '0 '):match('^(%d+) (.*)$')
if last == ARGV[5] then return 'run' end
if tonumber(runs) >= tonumber(ARGV[4]) then return 'poison' end
redis.call('HSET', KEYS[2], ARGV[3], (runs + 1) .. ' ' .. ARGV[5])
return 'run'
