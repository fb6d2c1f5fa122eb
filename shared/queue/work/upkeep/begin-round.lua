#!lua flags=allow-oom
-- begin-round.lua: make the caller the only worker that does a task in this round, such as
-- reconciling a lane, unless another worker does the task. A full Redis must not stop the repair of
-- lost work, hence allow-oom: the key is small, and soon gone.
--   KEYS.task      held by the worker that does the task
--   ARGV.consumer
--   ARGV.roundMs   length of a round
--   Returns 'begun'
--           'taken'    another worker does the task
if redis.call('SET', KEYS.task, ARGV.consumer, 'PX', ARGV.roundMs, 'NX') then return 'begun' end
return 'taken'
