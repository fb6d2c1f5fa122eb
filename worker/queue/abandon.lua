-- abandon.lua: let the leases of a worker run out now. Only its supervisor may call this, once the process is known to be dead, or the worker
-- itself when it leaves and has stopped all that it did with them.
--   KEYS[1] ready stream
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] idle ms to pretend, at least a lease
--   Returns how many entries any worker may take over now
local entries = {}
for _, row in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1000, ARGV[2])) do entries[#entries + 1] = row[1] end
for _, entry in ipairs(entries) do
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, entry, 'IDLE', ARGV[3], 'JUSTID')
end
return #entries
