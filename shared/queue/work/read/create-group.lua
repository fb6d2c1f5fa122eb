#!lua flags=allow-oom
-- create-group.lua: create the group of a lane's workers, and the stream if it is missing. For
-- Redis the plain command takes memory: a full Redis would refuse it, and no worker would ever read
-- the admitted requests. Hence allow-oom.
--   KEYS.ready  the stream
--   ARGV.group
--   Returns 'created'
--           'exists'    another worker was faster
--           Passes on any other error of XGROUP
local said = redis.pcall('XGROUP', 'CREATE', KEYS.ready, ARGV.group, '0', 'MKSTREAM')
if not said.err then return 'created' end
if said.err:find('^BUSYGROUP') then return 'exists' end
return said
