#!lua flags=allow-oom
-- note-process.lua: note that a process lives or has left.
--   KEYS[1] processes   ARGV[1] the process as JSON   ARGV[2] for how many ms; 0: it has left
--   Returns nothing
-- include pieces/time.lua
if ARGV[2] == '0' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
