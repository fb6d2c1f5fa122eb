#!lua flags=allow-oom
-- hibernate.lua: put pointers into the place of checkpoints that lie on disk by now
-- (sleeping-states.ts). A checkpoint never changes, so a pointer may take its place at any time. A
-- full Redis becomes emptier by it.
--   KEYS[1] how far the rounds have come   then the key of each checkpoint
--   ARGV[1] what of the live zset this round has come to   ARGV[2] TTL ms of that
--   then the pointer of each checkpoint
--   Returns how many were there still
local count = 0
for i = 2, #KEYS do
  if redis.call('SET', KEYS[i], ARGV[i + 1], 'XX', 'KEEPTTL') then count = count + 1 end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return count
