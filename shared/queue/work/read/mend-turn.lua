#!lua flags=allow-oom
-- mend-turn.lua: give a model its turn if there is none, or if its holder has not renewed it for
-- long. The holder then reads on until its next renewal, which does no harm.
--   KEYS.turn    stream: its only entry is the turn, with the Redis ms of its last renewal (at)
--   ARGV.group
--   ARGV.lostMs  ms without a renewal after which the turn counts as lost
--   Returns 1  there is a new turn
--           0  the turn was there already
-- include ../../pieces/time.lua
redis.pcall('XGROUP', 'CREATE', KEYS.turn, ARGV.group, '0', 'MKSTREAM')
local turn = redis.call('XRANGE', KEYS.turn, '-', '+', 'COUNT', 1)[1]
if turn then
  local holder = redis.call('XPENDING', KEYS.turn, ARGV.group, turn[1], turn[1], 1)[1]
  if not holder or now - tonumber(turn[2][2]) < tonumber(ARGV.lostMs) then return 0 end
  redis.call('XGROUP', 'DELCONSUMER', KEYS.turn, ARGV.group, holder[2])
  redis.call('XDEL', KEYS.turn, turn[1])
end
redis.call('XADD', KEYS.turn, '*', 'at', now)
return 1
