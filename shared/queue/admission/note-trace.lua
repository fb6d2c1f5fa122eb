#!lua
-- note-trace.lua: note the trace of a stream in its record, for readers that come later. A record
-- that has expired stays away.
--   KEYS.record  of the request (outcome.lua); a hash, because the request is a stream
--   ARGV.trace   the span of the admission, as a traceparent
if redis.call('EXISTS', KEYS.record) == 1 then redis.call('HSET', KEYS.record, 'trace', ARGV.trace) end
