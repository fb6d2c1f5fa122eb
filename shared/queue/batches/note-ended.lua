#!lua
-- note-ended.lua: note the event that a batch has ended, once, even if the caller repeats the call.
--   KEYS.told    mark that the event was noted
--   KEYS.wanted  wanted events (events.lua)
--   KEYS.events  the outbox
--   ARGV.tag     of the bucket, with braces
--   ARGV.tenant
--   ARGV.type    of the event
--   ARGV.facts   as JSON
--   ARGV.ttl     ms for which the mark stays
--   Returns nothing
-- include ../pieces/events.lua
if not redis.call('SET', KEYS.told, '1', 'NX', 'PX', ARGV.ttl) then return end
if wantsEvent(ARGV.tag, ARGV.tenant, ARGV.type) then
  noteEvent(ARGV.tag, ARGV.tenant, ARGV.type, cjson.decode(ARGV.facts))
end
