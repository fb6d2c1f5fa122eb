-- reap-consumers.lua: forget the consumers of processes that are gone. A consumer with pending
-- entries stays, because DELCONSUMER would drop the entries for good. So the look and the deletion
-- are one step.
--   KEYS[1] stream
--   ARGV[1] group   ARGV[2] idle ms after which a consumer counts as gone
--   Returns how many consumers are forgotten
local reaped = 0
for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #info, 2 do consumer[info[i]] = info[i + 1] end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
    reaped = reaped + 1
  end
end
return reaped
