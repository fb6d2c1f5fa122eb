#!lua flags=allow-oom
-- note-wanted.lua: note for the scripts of a bucket which events a tenant's webhooks want
-- (events.lua). Calls may come late and in any order: the highest revision stays.
--   KEYS[1] wanted   ARGV[1] tenant   ARGV[2] revision   ARGV[3] events, separated by spaces
--   Returns nothing
local known = redis.call('HGET', KEYS[1], ARGV[1])
local revision = known and tonumber(known:match('^%d+'))
if not revision or revision <= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '|' .. ARGV[3])
end
