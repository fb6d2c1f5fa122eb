#!lua flags=allow-oom
-- note-pins.lua: note what a worker serves, so that its lanes are found when nobody serves them any
-- more. A worker that starts must drain a full Redis, hence allow-oom.
--   KEYS[1] pins hash
--   ARGV    fields and values, by turns (pins.ts)
redis.call('HSET', KEYS[1], unpack(ARGV))
return #ARGV / 2
