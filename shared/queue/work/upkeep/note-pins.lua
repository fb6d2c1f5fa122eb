#!lua flags=allow-oom
-- note-pins.lua: note the pins that a worker serves, so that workers still find the lanes of a pin
-- after its last worker is gone. A worker that starts must drain a full Redis, hence allow-oom.
--   KEYS.pins    hash
--   ARGV.pins[]  as in pins.ts
--     .field
--     .value
redis.call('HSET', KEYS.pins, unpack(ARGV))
return #ARGV.pins
