-- reclaim.lua: take over entries whose lease ran out, following the cursor once; unless this call was held up on its way: while Redis was
-- frozen nobody could renew, and the call that waited in its socket would come before the renewals that waited in theirs.
--   KEYS[1] ready stream
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] lease ms   ARGV[4] cursor   ARGV[5] most entries   ARGV[6] Redis ms after which it is too late
--   Returns what XAUTOCLAIM does: {next cursor, entries, ids that were deleted}
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[6]) then return {'0-0', {}, {}} end
return redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], 'COUNT', ARGV[5])
