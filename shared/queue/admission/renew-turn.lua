#!lua flags=allow-oom
-- renew-turn.lua: renew a gateway's turn to observe, and read what the processes have counted. The
-- figures of the queue matter most while Redis is full, so no command here takes memory. A gateway
-- may not write the reports, so the script does not name their key, which lies beside the turn's.
--   KEYS.observer  string: the gateway that has the turn
--   ARGV.gateway
--   ARGV.forMs     how long the turn lasts
--   Returns each field of the reports, then its value; nil if the gateway does not have the turn
if redis.call('GET', KEYS.observer) ~= ARGV.gateway then return false end
redis.call('PEXPIRE', KEYS.observer, ARGV.forMs)
return redis.call('HGETALL', KEYS.observer:match('^.*:') .. 'reports')
