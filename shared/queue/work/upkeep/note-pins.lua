#!lua flags=allow-oom
-- note-pins.lua: note the pins that a worker serves, so that workers still find the lanes of a pin
-- after its last worker is gone. A worker that starts must drain a full Redis, hence allow-oom.
--   KEYS[1] pins hash
--   ARGV    fields and values, by turns (pins.ts)
redis.call('HSET', KEYS[1], unpack(ARGV))
return #ARGV / 2
