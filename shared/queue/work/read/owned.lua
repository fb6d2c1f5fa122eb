-- owned.lua: the fence: which entries of a lane a worker still owns. Scripts that act for a worker
-- on many entries include this file.
--   `oldest`, `newest`  the span in which the entries of the call lie
--   `most`              the most entries that the first look finds. The worker may own other
--                       entries in the span; if the look is full, the function looks for each
--                       missing entry by itself
-- Returns a function of an entry. The function returns `false` if the worker does not own the
-- entry, else the ms since the worker got the entry, or `true` if that time is unknown.
local function ownedBy(group, consumer, ready, oldest, newest, most)
  local rows = redis.call('XPENDING', ready, group, oldest, newest, most, consumer)
  local owned = {}
  for i = 1, #rows do owned[rows[i][1]] = rows[i][3] end
  return function(entry)
    return owned[entry] or #rows == most and #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 1
  end
end
