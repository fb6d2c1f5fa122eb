-- overdue.lua: whose leases still run, but were not renewed for longer than a living worker lets pass. One worker of a lane at a time is told, so
-- that a large fleet does not look for its dead all at once: whoever asks first, for as long as it goes on asking.
--   KEYS[1] ready stream   KEYS[2] who is told
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] idle ms that the living do not reach   ARGV[4] lease ms: past it any worker may take over anyhow
--   ARGV[5] ms for which the caller is the one that is told
--   Returns consumers, never the caller
local said, seen = {}, { [ARGV[2]] = true }
for _, row in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', 1000)) do
  local owner, idle = row[2], row[3]
  if not seen[owner] and idle < tonumber(ARGV[4]) then
    seen[owner] = true
    said[#said + 1] = owner
  end
end
if #said == 0 then return said end
local told = redis.call('GET', KEYS[2])
if told and told ~= ARGV[2] then return {} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[5])
return said
