#!lua flags=allow-oom
-- release.lua: hand entries back at once, uncharged: they become fresh entries that any worker may take.
--   KEYS[1] ready stream   KEYS[2] runs hash
--   then one per entry: its sequence hash, or its outcome hash if it is no step: what knows its id
--   ARGV[1] group   ARGV[2] consumer   ARGV[3..] entries
--   Returns how many were handed back; entries that are no longer ours are left alone
local ready, runs = KEYS[1], KEYS[2]
local released = 0
for i = 3, #ARGV do
  local entry, owner = ARGV[i], KEYS[i]
  if #redis.call('XPENDING', ready, ARGV[1], entry, entry, 1, ARGV[2]) == 1 then
    local found = redis.call('XRANGE', ready, entry, entry)[1]
    redis.call('XACK', ready, ARGV[1], entry)
    redis.call('XDEL', ready, entry)
    redis.call('HDEL', runs, entry)
    if found then
      local fresh = redis.call('XADD', ready, '*', unpack(found[2]))
      if redis.call('HEXISTS', owner, 'entry') == 1 then redis.call('HSET', owner, 'entry', fresh) end
      released = released + 1
    end
  end
end
return released
