#!lua flags=allow-oom
-- pass-turn.lua: pass a model's turn on to the worker that has waited longest for it, or renew it.
-- Both replace the entry, because the entry has the time of the renewal.
--   KEYS.turn       stream: its only entry is the turn
--   ARGV.group
--   ARGV.consumer
--   ARGV.entry      the turn as the caller has it
--   ARGV.to         'next', or 'caller' to renew
--   Returns the new entry; '' if the caller does not have the turn
-- include ../../pieces/time.lua
if #redis.call('XPENDING', KEYS.turn, ARGV.group, ARGV.entry, ARGV.entry, 1, ARGV.consumer) == 0 then return '' end
redis.call('XACK', KEYS.turn, ARGV.group, ARGV.entry)
redis.call('XDEL', KEYS.turn, ARGV.entry)
local entry = redis.call('XADD', KEYS.turn, '*', 'at', now)
if ARGV.to == 'caller' then
  redis.call('XREADGROUP', 'GROUP', ARGV.group, ARGV.consumer, 'COUNT', 1, 'STREAMS', KEYS.turn, '>')
end
return entry
