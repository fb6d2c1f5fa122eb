#!lua flags=no-writes,allow-oom
-- group-state.lua: what Redis counts of a lane's group, all of one moment: counts of two moments
-- would rarely agree under load. A transaction would do, but a full Redis takes none.
--   KEYS[1] ready stream
--   ARGV[1] group
--   Returns {length of the stream,
--            entries ahead of the group, or '' where deletions have blurred it,
--            pending entries, the id that was delivered last}
--           nil where there is no group
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
for _, row in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local fact = {}
  for i = 1, #row, 2 do fact[row[i]] = row[i + 1] end
  if fact.name == ARGV[1] then
    return { redis.call('XLEN', KEYS[1]), fact.lag or '', fact.pending, fact['last-delivered-id'] }
  end
end
return nil
