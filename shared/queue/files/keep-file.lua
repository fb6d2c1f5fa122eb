#!lua
-- keep-file.lua: finish a file, which is whole and visible from now on.
--   KEYS[1] the file (reserve-file.lua)   KEYS[2] all files of the tenant   KEYS[3] due
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] name   ARGV[4] purpose
--   ARGV[5] ms that the file lives, '' for ever
--   Returns {'kept', created, expires}   by this call or an earlier one
--           {'gone'}   the file is not in the state `writing` any more
local key, id = KEYS[1], ARGV[2]
local state, created, expires = unpack(redis.call('HMGET', key, 'state', 'created', 'expires'))
if state == 'kept' then return {'kept', created, expires} end
if state ~= 'writing' then return {'gone'} end
-- include ../pieces/time.lua
created = string.format('%.0f', now)
expires = ARGV[5] ~= '' and string.format('%.0f', now + ARGV[5]) or ''
redis.call('HSET', key, 'state', 'kept', 'created', created, 'expires', expires, 'name', ARGV[3], 'purpose', ARGV[4])
redis.call('ZADD', KEYS[2], created, id)
if expires ~= '' then redis.call('ZADD', KEYS[3], expires, ARGV[1] .. ':' .. id)
else redis.call('ZREM', KEYS[3], ARGV[1] .. ':' .. id) end
return {'kept', created, expires}
