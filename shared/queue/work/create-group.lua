#!lua flags=allow-oom
-- create-group.lua: make the group of a lane's workers, and its stream where there is none. The
-- plain command counts as one that takes memory: a full Redis would refuse it, and what was
-- admitted would never be read. Hence allow-oom.
--   KEYS[1] ready stream
--   ARGV[1] group
--   Returns 'created'
--           'exists'    another worker was faster
--           Any other error of XGROUP is passed on
local said = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
if not said.err then return 'created' end
if said.err:find('^BUSYGROUP') then return 'exists' end
return said
