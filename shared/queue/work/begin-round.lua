#!lua flags=allow-oom
-- begin-round.lua: make the caller the one worker that reconciles the lane in this round, unless
-- another worker is. A full Redis must not keep lost work from being mended, hence allow-oom: the
-- key is small, and soon gone.
--   KEYS[1] reconciler key
--   ARGV[1] consumer   ARGV[2] length of a round, ms
--   Returns 'begun'
--           'taken'    another worker reconciles
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 'begun' end
return 'taken'
