-- reap-consumers.lua: forget the consumers of processes that are gone. A consumer with pending
-- entries stays, because DELCONSUMER would drop the entries for good. So the look and the deletion
-- are one step.
--   KEYS.stream
--   ARGV.group
--   ARGV.idleMs  idle ms after which a consumer counts as gone
--   Returns how many consumers are forgotten
local reaped = 0
for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS.stream, ARGV.group)) do
  local consumer = {}
  for i = 1, #info, 2 do consumer[info[i]] = info[i + 1] end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV.idleMs) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS.stream, ARGV.group, consumer.name)
    reaped = reaped + 1
  end
end
return reaped
