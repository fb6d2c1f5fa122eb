#!lua flags=allow-oom
-- put-off.lua: delay a due job, because there is no room for it now. Each further wait is longer.
-- Changes nothing if the job has another stage.
--   KEYS[1] record of the job   KEYS[2] key of the counts (load.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the job
--   ARGV[3] its stage (job.lua)   ARGV[4] ms of the first wait   ARGV[5] most ms
--   ARGV[6] random factor of the wait, so that the jobs do not all come together
--   Returns ms after which the job is due, or -1 at another stage
local load = KEYS[2]
-- include ../pieces/job.lua
local base, name = ARGV[1], ARGV[2]
local stage, made = stageOf(KEYS[1])
if stage ~= ARGV[3] or stage:sub(-1) == '|' then return -1 end
-- include ../pieces/time.lua
local times = redis.call('HINCRBY', KEYS[1], 'refused', 1)
local wait = math.ceil(math.min(ARGV[4] * 2 ^ math.min(times - 1, 30), tonumber(ARGV[5])) * ARGV[6])
local bytes = redis.call('HSTRLEN', KEYS[1], 'body')
local at = string.format('%.0f', now + wait)
redis.call('HSET', KEYS[1], 'next', at .. '|' .. made)
redis.pcall('ZADD', laterKey(load), 'XX', at, bytes + LATER_BYTES .. '|' .. base .. ':' .. name)
return wait
