#!lua flags=no-writes,allow-oom
-- read-fleet.lua: read what says whether the fleet has changed, and who is late in it. Every
-- gateway calls it once a second, so it does not read the fleet itself.
--   KEYS[1] workers zset   KEYS[2] version
--   Returns {Redis ms, version or '', late}
--           late: name, and Redis ms until which it counted as living, for each worker whose time
--                 is over and that nobody has declared dead yet: nobody is left to do so, or Redis
--                 was just away
-- include ../time.lua
local late = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'WITHSCORES')
return {now, redis.call('GET', KEYS[2]) or '', late}
