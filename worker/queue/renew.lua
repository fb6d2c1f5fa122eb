-- renew.lua: extend the leases of the entries that this worker still owns. A plain XCLAIM would take an entry back from its new owner.
--   KEYS[1] ready stream
--   ARGV[1] group   ARGV[2] consumer   ARGV[3..] entries
--   Returns {Redis time in ms, entries that are no longer ours...}
local time = redis.call('TIME')
local said = {time[1] * 1000 + math.floor(time[2] / 1000)}
for i = 3, #ARGV do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) == 1 then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  else
    said[#said + 1] = ARGV[i]
  end
end
return said
