#!lua flags=allow-oom
-- begin-alone.lua: count a run of a suspect before the run starts. A suspect is a request whose
-- earlier run may have ended its worker; now the request runs alone. The script counts runs and not
-- deliveries: an entry that a dead worker held but had not begun never ran, and must not be
-- convicted.
--   KEYS.ready     the stream
--   KEYS.runs      hash: the runs of each suspect, by entry
--   ARGV.group
--   ARGV.consumer
--   ARGV.entry
--   ARGV.most      most runs
--   ARGV.run       name of this run, a new name for each run
--   Returns 'run'      counted; start the run now. A repeated call with the same name counts once,
--                      because a lost reply must not convict the request
--           'poison'   all allowed runs ended without a commit
--           'lost'     the caller no longer owns the entry
if #redis.call('XPENDING', KEYS.ready, ARGV.group, ARGV.entry, ARGV.entry, 1, ARGV.consumer) == 0 then return 'lost' end
local runs, last = (redis.call('HGET', KEYS.runs, ARGV.entry) or '0 '):match(PATTERN.runs(count, last))
if last == ARGV.run then return 'run' end
if tonumber(runs) >= tonumber(ARGV.most) then return 'poison' end
redis.call('HSET', KEYS.runs, ARGV.entry, TEXT.runs{count = runs + 1, last = ARGV.run})
return 'run'
