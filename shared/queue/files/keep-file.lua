#!lua
-- keep-file.lua: finish a file, which is whole and visible from now on.
--   KEYS.file     (reserve-file.lua)
--   KEYS.all      all files of the tenant
--   KEYS.due      when upkeep looks at each file
--   ARGV.tenant
--   ARGV.id
--   ARGV.name
--   ARGV.purpose
--   ARGV.ttl      ms that the file lives, '' for ever
--   Returns {'kept', created, expires}   by this call or an earlier one
--           {'gone'}   the file is not in the state `writing` any more
local key, id = KEYS.file, ARGV.id
local state, created, expires = unpack(redis.call('HMGET', key, 'state', 'created', 'expires'))
if state == 'kept' then return {'kept', created, expires} end
if state ~= 'writing' then return {'gone'} end
-- include ../pieces/time.lua
created = string.format('%d', now)
expires = ARGV.ttl ~= '' and string.format('%d', now + ARGV.ttl) or ''
redis.call('HSET', key, 'state', 'kept', 'created', created, 'expires', expires, 'name', ARGV.name, 'purpose', ARGV.purpose)
redis.call('ZADD', KEYS.all, created, id)
if expires ~= '' then redis.call('ZADD', KEYS.due, expires, ARGV.tenant .. ':' .. id)
else redis.call('ZREM', KEYS.due, ARGV.tenant .. ':' .. id) end
return {'kept', created, expires}
