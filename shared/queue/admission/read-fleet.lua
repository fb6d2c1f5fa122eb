#!lua flags=no-writes,allow-oom
-- read-fleet.lua: read whether the fleet has changed, and which workers are late. Every gateway
-- calls this script once a second, so the script does not read the fleet itself.
--   KEYS.workers  zset
--   KEYS.version
--   KEYS.tracing  hash: the settings of traces that operators have changed (trace-settings.ts)
--   KEYS.logging  how much all processes log, if an operator has changed it (log-setting.ts)
--   Returns {Redis ms, version or '', late, tracing, logging or ''}
--           late: name, and Redis ms until which it counted as living, for each worker whose time
--                 is over and that no process has declared dead yet: no process is left to do so,
--                 or Redis was just away
-- include ../pieces/time.lua
local late = redis.call('ZRANGE', KEYS.workers, '-inf', now, 'BYSCORE', 'WITHSCORES')
return {now, redis.call('GET', KEYS.version) or '', late, redis.call('HGETALL', KEYS.tracing),
  redis.call('GET', KEYS.logging) or ''}
