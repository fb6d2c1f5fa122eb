#!lua flags=allow-oom
-- mend-turn.lua: give a model its turn if there is none, or if its holder has not renewed it for
-- long. The holder then reads on until its next renewal, which does no harm.
--   KEYS.turn      stream: its only entry is the turn, with the Redis ms of its last renewal (at)
--   KEYS.ready[]   the ready streams of the model that the holder reads
--   ARGV.group
--   ARGV.lostMs    ms without a renewal after which the turn counts as lost
--   ARGV.unreadMs  ms after which a request in a ready stream counts as left behind
--   Returns 'new'     there is a new turn
--           'unread'  the turn was there, but a request is left behind
--           'kept'    the turn was there
-- include ../../pieces/time.lua
redis.pcall('XGROUP', 'CREATE', KEYS.turn, ARGV.group, '0', 'MKSTREAM')
local turn = redis.call('XRANGE', KEYS.turn, '-', '+', 'COUNT', 1)[1]
local holder = turn and redis.call('XPENDING', KEYS.turn, ARGV.group, turn[1], turn[1], 1)[1]
local isLost = holder and now - tonumber(turn[2][2]) >= tonumber(ARGV.lostMs)
if isLost then
  redis.call('XGROUP', 'DELCONSUMER', KEYS.turn, ARGV.group, holder[2])
  redis.call('XDEL', KEYS.turn, turn[1])
end
if isLost or not turn then
  redis.call('XADD', KEYS.turn, '*', 'at', now)
  return 'new'
end
for i = 1, #KEYS.ready do
  if redis.call('XLEN', KEYS.ready[i]) > 0 then
    local group = redis.call('XINFO', 'GROUPS', KEYS.ready[i])[1] or {}
    for field = 1, #group, 2 do
      if group[field] == 'last-delivered-id' then
        local unread = redis.call('XRANGE', KEYS.ready[i], '(' .. group[field + 1], '+', 'COUNT', 1)[1]
        if unread and now - tonumber(unread[1]:match('^%d+')) >= tonumber(ARGV.unreadMs) then return 'unread' end
      end
    end
  end
end
return 'kept'
