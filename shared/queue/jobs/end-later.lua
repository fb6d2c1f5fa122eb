#!lua flags=allow-oom
-- end-later.lua: end a job that waits for its time, after a cancellation, an expiry, or a refusal
-- to queue it. Changes nothing if the job has another stage.
--   KEYS[1] record of the job   KEYS[2] key of the counts (load.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the job
--   ARGV[3] its stage (job.lua)   ARGV[4] outcome body of the error
--   ARGV[5] TTL ms of the record from now on
--   Returns 1 if this call has ended the job, else 0
local load = KEYS[2]
-- include ../pieces/job.lua
local base, name = ARGV[1], ARGV[2]
local stage, made = stageOf(KEYS[1])
if stage ~= ARGV[3] or stage:sub(-1) == '|' then return 0 end
-- include ../pieces/time.lua
local now = string.format('%.0f', now)
local bytes = redis.call('HSTRLEN', KEYS[1], 'body')
dropLater(load, base, name, bytes)
redis.call('HSET', KEYS[1], 'ended', now, 'failure', ARGV[4])
closeJob(load, base, name, bytes, 'error', ARGV[4], ARGV[5], now)
-- Have a jobs process remove the job's timer.
tellLater(base, name, made)
return 1
