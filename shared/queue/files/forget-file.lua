#!lua flags=allow-oom
-- forget-file.lua: forget a dropped file whose bytes are gone, and stop counting it.
--   KEYS.file    (reserve-file.lua)
--   KEYS.sums
--   KEYS.due     when upkeep looks at each file
--   KEYS.users   of the file
--   ARGV.tenant
--   ARGV.id
--   Returns nothing
local sums, tenant = KEYS.sums, ARGV.tenant
local state, bytes = unpack(redis.call('HMGET', KEYS.file, 'state', 'bytes'))
if not state then redis.call('ZREM', KEYS.due, tenant .. ':' .. ARGV.id) end
if state ~= 'gone' then return end

local function less(field, by)
  if redis.call('HINCRBY', sums, field, string.format('%d', 0 - by)) <= 0 then redis.call('HDEL', sums, field) end
end

less('files:' .. tenant, 1)
less('files', 1)
less('bytes:' .. tenant, tonumber(bytes or '0'))
less('bytes', tonumber(bytes or '0'))
redis.call('DEL', KEYS.file, KEYS.users)
redis.call('ZREM', KEYS.due, tenant .. ':' .. ARGV.id)
