#!lua flags=allow-oom
-- note-wanted.lua: note for the scripts of a bucket which events a tenant's webhooks want
-- (events.lua). Calls may come late and in any order: the highest revision stays.
--   KEYS.wanted
--   ARGV.tenant
--   ARGV.revision
--   ARGV.events    separated by spaces
--   Returns nothing
local known = redis.call('HGET', KEYS.wanted, ARGV.tenant)
local revision = known and tonumber(known:match(PATTERN.wanted(revision)))
if not revision or revision <= tonumber(ARGV.revision) then
  redis.call('HSET', KEYS.wanted, ARGV.tenant, TEXT.wanted{revision = ARGV.revision, events = ARGV.events})
end
