#!lua flags=allow-oom
-- begin-alone.lua: count a run of a suspect before the run starts. A suspect is a step whose
-- earlier attempt ended without a commit; now it runs by itself. The script counts runs and not
-- deliveries: an entry that a dead worker held but had not begun never ran, and must not be
-- convicted.
--   KEYS[1] ready stream   KEYS[2] runs hash
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] entry   ARGV[4] most runs
--   ARGV[5] name of this run, a new name for each run
--   Returns 'run'      counted; start the run now. A repeated call with the same name counts once,
--                      because a lost reply must not convict the request
--           'poison'   all allowed runs ended without a commit
--           'lost'     the caller no longer owns the entry
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2]) == 0 then return 'lost' end
local runs, last = (redis.call('HGET', KEYS[2], ARGV[3]) or '0 '):match('^(%d+) (.*)$')
if last == ARGV[5] then return 'run' end
if tonumber(runs) >= tonumber(ARGV[4]) then return 'poison' end
redis.call('HSET', KEYS[2], ARGV[3], (runs + 1) .. ' ' .. ARGV[5])
return 'run'
