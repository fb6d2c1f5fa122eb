#!lua flags=no-writes,allow-oom
-- look-at-pending.lua: count the pending deliveries of all tenants, and find the oldest of some:
-- those with the first and with the last next attempts, since a receiver that has been away for
-- long has its next attempt late. Of fewer deliveries, the oldest of all.
--   KEYS.pending   zset; webhookKeys in keys.ts
--   ARGV.delivery  what the keys of deliveries begin with
--   Returns {pending deliveries, since when or ''}
--     since when: Redis ms at which the oldest began
local LOOK = 64
local oldest
local function look(from, to)
  for _, member in ipairs(redis.call('ZRANGE', KEYS.pending, from, to)) do
    local created = redis.pcall('HGET', ARGV.delivery .. member, 'created')
    local at = type(created) == 'string' and tonumber(created)
    if at and (not oldest or at < oldest) then oldest = at end
  end
end
local count = redis.call('ZCARD', KEYS.pending)
look(0, LOOK - 1)
if count > LOOK then look(math.max(LOOK, count - LOOK), -1) end
return {count, oldest and string.format('%d', oldest) or ''}
