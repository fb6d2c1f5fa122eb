#!lua flags=allow-oom
-- forget-file.lua: forget a dropped file whose bytes are gone, and stop counting it.
--   KEYS[1] the file (reserve-file.lua)   KEYS[2] sums   KEYS[3] due   KEYS[4] its users
--   ARGV[1] tenant   ARGV[2] id
--   Returns nothing
local key, sums, tenant = KEYS[1], KEYS[2], ARGV[1]
local state, bytes = unpack(redis.call('HMGET', key, 'state', 'bytes'))
if not state then redis.call('ZREM', KEYS[3], tenant .. ':' .. ARGV[2]) end
if state ~= 'gone' then return end

local function less(field, by)
  if redis.call('HINCRBY', sums, field, string.format('%.0f', 0 - by)) <= 0 then redis.call('HDEL', sums, field) end
end

less('files:' .. tenant, 1)
less('files', 1)
less('bytes:' .. tenant, tonumber(bytes or '0'))
less('bytes', tonumber(bytes or '0'))
redis.call('DEL', key, KEYS[4])
redis.call('ZREM', KEYS[3], tenant .. ':' .. ARGV[2])
