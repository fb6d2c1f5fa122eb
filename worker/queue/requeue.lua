#!lua flags=allow-oom
-- requeue.lua: find entries that nobody will ever deliver again: not pending, yet not ahead of the group. Only outside interference
-- (XGROUP DELCONSUMER, XACK by hand) makes one; it becomes a fresh entry.
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3..] sequence hashes of the candidate entries, or the ready stream for a stateless request
--   ARGV[1] group   ARGV[2..] candidate entries, none newer than the group's last delivered id
--   Returns how many were queued anew
local ready, runs = KEYS[1], KEYS[2]
local fresh = 0
for i = 2, #ARGV do
  local entry, seq = ARGV[i], KEYS[i + 1]
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  if found and #redis.call('XPENDING', ready, ARGV[1], entry, entry, 1) == 0 then
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', runs, entry)
    local id = redis.call('XADD', ready, '*', unpack(found[2]))
    if seq ~= ready then redis.call('HSET', seq, 'entry', id) end
    fresh = fresh + 1
  end
end
return fresh
