#!lua flags=allow-oom
-- put-off.lua: delay a due job, because there is no room for it now. Each further wait is longer.
-- Changes nothing if the job has another stage.
--   KEYS.record  of the job
--   KEYS.load    the counts (load.lua)
--   ARGV.base    tag of the bucket and model, `{tag}:model`
--   ARGV.job     name of the job
--   ARGV.stage   its stage (job.lua)
--   ARGV.first   ms of the first wait
--   ARGV.most    most ms of a wait without the factor
--   ARGV.factor  random factor of the wait, so that the jobs do not all come together
--   Returns ms after which the job is due, or -1 at another stage
local load = KEYS.load
-- include ../pieces/job.lua
local base, name = ARGV.base, ARGV.job
local stage, made, due = stageOf(KEYS.record)
if stage ~= ARGV.stage or not due then return -1 end
-- include ../pieces/time.lua
local times = redis.call('HINCRBY', KEYS.record, 'refused', 1)
local wait = math.ceil(math.min(ARGV.first * 2 ^ math.min(times - 1, 30), tonumber(ARGV.most)) * ARGV.factor)
local bytes = redis.call('HSTRLEN', KEYS.record, 'body')
local at = string.format('%d', now + wait)
redis.call('HSET', KEYS.record, 'next', TEXT.due{at = at, made = made})
redis.pcall('ZADD', laterKey(load), 'XX', at, TEXT.sized{bytes = bytes + LATER_BYTES, name = base .. ':' .. name})
return wait
