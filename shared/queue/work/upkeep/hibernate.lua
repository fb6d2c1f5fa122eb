#!lua flags=allow-oom
-- hibernate.lua: replace checkpoints by pointers, once the checkpoints lie on disk
-- (sleeping-states.ts). A checkpoint never changes, so a pointer may replace it at any time. A full
-- Redis becomes emptier by this call.
--   KEYS[1] progress of the rounds   then the key of each checkpoint
--   ARGV[1] the time in the live zset that this round has reached   ARGV[2] TTL ms of KEYS[1]
--   then the pointer of each checkpoint
--   Returns how many checkpoints were still there
local count = 0
for i = 2, #KEYS do
  if redis.call('SET', KEYS[i], ARGV[i + 1], 'XX', 'KEEPTTL') then count = count + 1 end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return count
