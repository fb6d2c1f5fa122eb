#!lua flags=allow-oom
-- hibernate.lua: replace checkpoints by pointers, once the checkpoints lie on disk
-- (sleeping-states.ts). A checkpoint never changes, so a pointer may replace it at any time. A full
-- Redis becomes emptier by this call.
--   KEYS.live           zset (live.lua)
--   KEYS.reached        progress of the rounds
--   KEYS.checkpoints[]
--   ARGV.base           tag of the bucket and model, `{tag}:model`
--   ARGV.reached        the time in the live zset that this round has reached
--   ARGV.ttl            ms for which `KEYS.reached` stays
--   ARGV.pointers[]     of each checkpoint
--   ARGV.active[]       sequences before that time that are busy or have lived on, to file again
--   Returns how many checkpoints were still there
-- include ../../pieces/sequence.lua
-- include ../../pieces/live.lua
local count = 0
for i = 1, #KEYS.checkpoints do
  if redis.call('SET', KEYS.checkpoints[i], ARGV.pointers[i], 'XX', 'KEEPTTL') then count = count + 1 end
end
local active = {}
for at = ARGV.pointers.FIRST + #KEYS.checkpoints, #ARGV do active[#active + 1] = ARGV.active(at) end
lookUpSequences(ARGV.base, active)
for i = 1, #active do
  local seq = readableSequence(ARGV.base, active[i])
  if seq then redis.call('ZADD', KEYS.live, 'XX', filedAt(seq), active[i]) end
end
redis.call('SET', KEYS.reached, ARGV.reached, 'PX', ARGV.ttl)
return count
