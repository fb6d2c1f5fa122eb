#!lua flags=allow-oom
-- take-over.lua: decide how a worker continues streams whose earlier worker ended without a commit.
-- The worker calls this when the turn of the streams comes, not when it claims them: a stream that
-- a dead worker held but had not begun never ran there. A stream whose log has grown since its last
-- takeover did not end that worker at its first step, so it may run beside other streams. A
-- takeover is without progress if the log is no longer than at the takeover before, or empty at the
-- first takeover. After two such takeovers in a row, a stream runs alone (begin-alone.lua). All
-- these streams are suspects, but if each ran alone, each would wait for all the rest.
-- Progress clears the counts against a stream: runs alone that ended after their first token do not
-- count against it.
--   KEYS.ready       the stream of the lane
--   KEYS.runs        hash: the runs of each suspect, by entry (begin-alone.lua)
--   KEYS.requests[]  for each entry:
--     .record        the outcome hash (outcome.lua)
--     .log
--   ARGV.group
--   ARGV.consumer
--   ARGV.takeover    name of this takeover, a new name for each
--   ARGV.entries[]
--   Returns a word for each entry
--           'together'  run beside other streams
--           'alone'     this takeover and the takeover before it are without progress
--           'ended'     the request has an outcome, or its outcome hash is gone
--           'lost'      the caller no longer owns the entry
--           A repeated call with the same name gets the same 'together' or 'alone'
local function takeOver(out, log, entry)
  if #redis.call('XPENDING', KEYS.ready, ARGV.group, entry, entry, 1, ARGV.consumer) == 0 then return 'lost' end
  local facts = redis.call('HMGET', out, 'digest', 'kind', 'taken')
  if not facts[1] or facts[2] then return 'ended' end
  -- Length of the log at the last takeover, takeovers in a row without progress, name of the last
  -- takeover.
  local reached, idle, last = (facts[3] or '0 0 '):match('^(%d+) (%d+) (.*)$')
  if last ~= ARGV.takeover then
    local length = redis.call('LLEN', log)
    if length > tonumber(reached) then
      idle = 0
      redis.call('HDEL', KEYS.runs, entry)
    else
      idle = idle + 1
    end
    redis.call('HSET', out, 'taken', length .. ' ' .. idle .. ' ' .. ARGV.takeover)
  end
  if tonumber(idle) <= 1 then return 'together' end
  return 'alone'
end

local said = {}
for i = 1, #ARGV.entries do
  said[i] = takeOver(KEYS.requests[i].record, KEYS.requests[i].log, ARGV.entries[i])
end
return said
