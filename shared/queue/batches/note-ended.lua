#!lua
-- note-ended.lua: note the event that a batch has ended, once, even if the caller repeats the call.
--   KEYS[1] mark that the event was noted   KEYS[2] wanted events   KEYS[3] the outbox
--   ARGV[1] tag of the bucket, with braces   ARGV[2] tenant   ARGV[3] type   ARGV[4] facts, as JSON
--   ARGV[5] ms for which the mark stays
--   Returns nothing
-- include ../pieces/events.lua
if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[5]) then return end
if wantsEvent(ARGV[1], ARGV[2], ARGV[3]) then noteEvent(ARGV[1], ARGV[2], ARGV[3], cjson.decode(ARGV[4])) end
