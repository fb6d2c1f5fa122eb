#!lua flags=allow-oom
-- note-process.lua: note that a process lives or has left.
--   KEYS.processes
--   ARGV.process    as JSON
--   ARGV.before     as the call before noted it, or ''
--   ARGV.forMs      for how many ms; 0: it has left
--   Returns nothing
-- include pieces/time.lua
if ARGV.before ~= ARGV.process then redis.call('ZREM', KEYS.processes, ARGV.before) end
if ARGV.forMs == '0' then
  redis.call('ZREM', KEYS.processes, ARGV.process)
else
  redis.call('ZADD', KEYS.processes, string.format('%d', now + ARGV.forMs), ARGV.process)
end
redis.call('ZREMRANGEBYSCORE', KEYS.processes, '-inf', string.format('%d', now))
