#!lua flags=allow-oom
-- take-over.lua: decide how a worker goes on with streams whose earlier worker ended without a
-- commit. It is called when their turn has come, not when they are claimed: a stream that a dead
-- worker held but had not begun never ran there. A stream whose log has grown since it was last
-- taken over did not end that worker at its first step, so it may go on among others. One that
-- makes no progress twice in a row is suspected, and runs alone (begin-alone.lua): running every
-- stream of a dead worker alone would make each of them wait for all others.
-- Progress clears what was counted against a stream: runs alone that ended later than in its first
-- token do not count against it.
--   KEYS[1] ready stream   KEYS[2] runs hash   then two per entry:  outcome hash, log
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] name of this takeover, a new one for each
--   ARGV[4..] entries
--   Returns one word per entry
--           'together'  go on beside others
--           'alone'     no progress since the takeover before last
--           'ended'     it has an outcome, or no outcome hash any more
--           'lost'      the caller does not own the entry any more
--           'together' and 'alone' stay the same however often this takeover is announced
local ready, runs, group, consumer, name = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

local function takeOver(out, log, entry)
  if #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 0 then return 'lost' end
  local facts = redis.call('HMGET', out, 'digest', 'kind', 'taken')
  if not facts[1] or facts[2] then return 'ended' end
  -- Length of the log at the last takeover, takeovers in a row without progress, name of the last.
  local reached, idle, last = (facts[3] or '0 0 '):match('^(%d+) (%d+) (.*)$')
  if last ~= name then
    local length = redis.call('LLEN', log)
    if length > tonumber(reached) then
      idle = 0
      redis.call('HDEL', runs, entry)
    else
      idle = idle + 1
    end
    redis.call('HSET', out, 'taken', length .. ' ' .. idle .. ' ' .. name)
  end
  if tonumber(idle) <= 1 then return 'together' end
  return 'alone'
end

local said = {}
for i = 4, #ARGV do
  local k = 2 * i - 5
  said[#said + 1] = takeOver(KEYS[k], KEYS[k + 1], ARGV[i])
end
return said
