#!lua flags=allow-oom
-- begin-round.lua: make the caller the only worker that does a task in this round, such as
-- reconciling a lane, unless another worker does the task. A full Redis must not stop the repair of
-- lost work, hence allow-oom: the key is small, and soon gone.
--   KEYS[1] key of the task
--   ARGV[1] consumer   ARGV[2] length of a round, ms
--   Returns 'begun'
--           'taken'    another worker does the task
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 'begun' end
return 'taken'
