#!lua flags=allow-oom
-- end-later.lua: end a job while it waits for its time: it was cancelled, has expired, or cannot be
-- queued. Nothing happens where it is at another stage.
--   KEYS[1] record of the job   KEYS[2] what is counted (load.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the job
--   ARGV[3] its stage (job.lua)   ARGV[4] outcome body of the error
--   ARGV[5] ms for which it is known from now on
--   Returns 1 if this call has ended it, else 0
local load = KEYS[2]
-- include ../job.lua
local base, name = ARGV[1], ARGV[2]
local stage, made = stageOf(KEYS[1])
if stage ~= ARGV[3] or stage:sub(-1) == '|' then return 0 end
-- include ../time.lua
local now = string.format('%.0f', now)
local bytes = redis.call('HSTRLEN', KEYS[1], 'body')
dropLater(load, base, name, bytes)
redis.call('HSET', KEYS[1], 'ended', now, 'failure', ARGV[4])
closeJob(load, base, name, bytes, 'error', ARGV[4], ARGV[5], now)
-- A timer that is set for it is taken back.
tellLater(base, name, made)
return 1
