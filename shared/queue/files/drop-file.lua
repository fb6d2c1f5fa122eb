#!lua flags=allow-oom
-- drop-file.lua: hide a file from clients, unless the file is in use. The caller then removes the
-- bytes, and upkeep does so if the caller dies.
--   KEYS[1] the file (reserve-file.lua)   KEYS[2] all files of the tenant   KEYS[3] its users
--   KEYS[4] due   ARGV[1] tenant   ARGV[2] id   ARGV[3] ms until upkeep looks at the file
--   Returns 'dropped', 'in_use', or 'unknown' if there is no such file
local key, id = KEYS[1], ARGV[2]
local state = redis.call('HGET', key, 'state')
if not state or state == 'gone' then return 'unknown' end
-- include ../pieces/time.lua
if redis.call('ZCOUNT', KEYS[3], string.format('(%.0f', now), '+inf') > 0 then return 'in_use' end
redis.call('HSET', key, 'state', 'gone')
redis.call('ZREM', KEYS[2], id)
redis.call('ZADD', KEYS[4], string.format('%.0f', now + ARGV[3]), ARGV[1] .. ':' .. id)
return 'dropped'
