#!lua flags=no-writes,allow-oom
-- group-state.lua: read the facts that show whether all delivered entries are pending, all at the
-- same moment: counts of two moments would rarely agree under load. A transaction would do, but a
-- full Redis takes none. Redis's own `lag` would do too, but on 7.0 `lag` stays wrong for ever
-- after a script deletes the entry that comes next, as withdraw.lua does.
--   KEYS.ready  the stream
--   ARGV.group
--   Returns {length of the stream, its oldest entry, its newest entry,
--            count of pending entries, the oldest pending entry or '', the entry delivered last}
--           nil if there is no group, or no entry in the stream
if redis.call('EXISTS', KEYS.ready) == 0 then return nil end
local oldest = redis.call('XRANGE', KEYS.ready, '-', '+', 'COUNT', 1)[1]
if not oldest then return nil end
for _, row in ipairs(redis.call('XINFO', 'GROUPS', KEYS.ready)) do
  local fact = {}
  for i = 1, #row, 2 do fact[row[i]] = row[i + 1] end
  if fact.name == ARGV.group then
    local newest = redis.call('XREVRANGE', KEYS.ready, '+', '-', 'COUNT', 1)[1]
    local pending = redis.call('XPENDING', KEYS.ready, ARGV.group)
    return {redis.call('XLEN', KEYS.ready), oldest[1], newest[1], pending[1], pending[2] or '',
      fact['last-delivered-id']}
  end
end
return nil
