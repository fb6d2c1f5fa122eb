-- live.lua: the index of the live sequences of a model in a bucket, by when they expire idle.
--   key `live:{b}:m`  zset: name of a sequence -> Redis ms, or +inf for a busy sequence
-- A sequence expires at the time in the index or later, and a script that comes to that time looks
-- at the facts. So a sequence with many steps in a row keeps its place, although each step puts its
-- end off: no admission moves a sequence, and a commit moves it only if its last step ended a while
-- ago. Hibernation passes over the index, too. It counts on a new place for each sequence that has
-- been idle for as long (`BATON_HIBERNATE_AFTER_MS` is no shorter).
local AWHILE = 100

-- File sequences that came to rest.
--   `idle`  names; for each name `before` is when the sequence would have expired without the step
local function fileIdle(base, idle, before, lapses)
  local moved, lowered, score = {}, {}, string.format('%d', lapses)
  for i = 1, #idle do
    local to = before[i] + AWHILE > lapses and lowered or moved
    to[#to + 1] = score
    to[#to + 1] = idle[i]
  end
  local live = 'live:' .. base
  if #moved > 0 then redis.call('ZADD', live, unpack(moved)) end
  -- Only the place of a sequence that another script has found busy is later.
  if #lowered > 0 then redis.call('ZADD', live, 'LT', unpack(lowered)) end
end

-- The true time of a sequence, for the index.
local function filedAt(facts) return isBusy(facts) and '+inf' or string.format('%d', facts.lapses) end
