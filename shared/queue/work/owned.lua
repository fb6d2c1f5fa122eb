-- owned.lua: the fence, for scripts that act for a worker on many entries of a lane: which of them
-- it still owns. A piece that these scripts include.
--   `oldest`, `newest`  the span in which the entries of the call lie
--   `most`              so many entries are found by one look. The worker may own others between
--                       them; where it owns as many as that, each entry is looked for by itself
-- Returns a function that says whether the worker owns an entry: not at all, or for how many ms by
-- now; or just `true` where that is not known.
local function ownedBy(group, consumer, ready, oldest, newest, most)
  local rows = redis.call('XPENDING', ready, group, oldest, newest, most, consumer)
  local owned = {}
  for i = 1, #rows do owned[rows[i][1]] = rows[i][3] end
  return function(entry)
    return owned[entry] or #rows == most and #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 1
  end
end
