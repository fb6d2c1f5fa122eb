#!lua flags=allow-oom
-- end-later.lua: end a job that waits for its time, after a cancellation, an expiry, or a refusal
-- to queue it. Changes nothing if the job has another stage.
--   KEYS.record   of the job
--   KEYS.load     the counts (load.lua)
--   ARGV.base     tag of the bucket and model, `{tag}:model`
--   ARGV.job      name of the job
--   ARGV.stage    its stage (job.lua)
--   ARGV.failure  outcome body of the error
--   ARGV.ttl      ms for which the record stays from now on
--   Returns 1 if this call has ended the job, else 0
local load = KEYS.load
-- include ../pieces/job.lua
local base, name = ARGV.base, ARGV.job
local stage, made, due = stageOf(KEYS.record)
if stage ~= ARGV.stage or not due then return 0 end
-- include ../pieces/time.lua
local now = string.format('%d', now)
local bytes = redis.call('HSTRLEN', KEYS.record, 'body')
dropLater(load, base, name, bytes)
redis.call('HSET', KEYS.record, 'ended', now, 'failure', ARGV.failure)
closeJob(load, base, name, bytes, 'error', ARGV.failure, ARGV.ttl, now)
letGo(load, {})
-- Have a jobs process remove the job's timer.
tellLater(base, name, made)
return 1
