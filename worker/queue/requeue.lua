#!lua flags=allow-oom
-- requeue.lua: find entries that nobody will ever deliver again: not pending, yet not ahead of the group. Only outside interference
-- (XGROUP DELCONSUMER, XACK by hand) makes one; it becomes a fresh entry.
--   KEYS[1] ready stream   KEYS[2] runs hash
--   then one per entry: its sequence hash, or its outcome hash if it is no step: what knows its id
--   ARGV[1] group   ARGV[2..] candidate entries, none newer than the group's last delivered id
--   Returns how many were queued anew
local ready, runs = KEYS[1], KEYS[2]
local fresh = 0
for i = 2, #ARGV do
  local entry, owner = ARGV[i], KEYS[i + 1]
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  if found and #redis.call('XPENDING', ready, ARGV[1], entry, entry, 1) == 0 then
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', runs, entry)
    local id = redis.call('XADD', ready, '*', unpack(found[2]))
    if redis.call('HEXISTS', owner, 'entry') == 1 then redis.call('HSET', owner, 'entry', id) end
    fresh = fresh + 1
  end
end
return fresh
