#!lua flags=allow-oom
-- hibernate.lua: replace checkpoints by pointers, once the checkpoints lie on disk
-- (sleeping-states.ts). A checkpoint never changes, so a pointer may replace it at any time. A full
-- Redis becomes emptier by this call.
--   KEYS.reached        progress of the rounds
--   KEYS.checkpoints[]
--   ARGV.reached        the time in the live zset that this round has reached
--   ARGV.ttl            ms for which `KEYS.reached` stays
--   ARGV.pointers[]     of each checkpoint
--   Returns how many checkpoints were still there
local count = 0
for i = 1, #KEYS.checkpoints do
  if redis.call('SET', KEYS.checkpoints[i], ARGV.pointers[i], 'XX', 'KEEPTTL') then count = count + 1 end
end
redis.call('SET', KEYS.reached, ARGV.reached, 'PX', ARGV.ttl)
return count
