#!lua flags=allow-oom
-- drop-file.lua: hide a file from clients, unless the file is in use. The caller then removes the
-- bytes, and upkeep does so if the caller dies.
--   KEYS.file      (reserve-file.lua)
--   KEYS.all       all files of the tenant
--   KEYS.users     of the file
--   KEYS.due       when upkeep looks at each file
--   ARGV.tenant
--   ARGV.id
--   ARGV.upkeepMs  ms until upkeep looks at the file
--   Returns 'dropped', 'in_use', or 'unknown' if there is no such file
local state = redis.call('HGET', KEYS.file, 'state')
if not state or state == 'gone' then return 'unknown' end
-- include ../pieces/time.lua
if redis.call('ZCOUNT', KEYS.users, string.format('(%.0f', now), '+inf') > 0 then return 'in_use' end
redis.call('HSET', KEYS.file, 'state', 'gone')
redis.call('ZREM', KEYS.all, ARGV.id)
redis.call('ZADD', KEYS.due, string.format('%d', now + ARGV.upkeepMs), ARGV.tenant .. ':' .. ARGV.id)
return 'dropped'
