-- kept.lua: the results that are kept for clients who come back, under an Idempotency-Key or for a
-- request in the background. That a request has ended, and how, is kept for as long as its key is
-- remembered; what it gave, for a shorter time, and only as long as all of these together take no
-- more than their budget. Scripts include this file that write or drop one. Beside load.lua:
--   key `kept:…`  sorted set: `<bytes>|<request as in open>`, by the ms at which its result goes
--   field `kept` of `load:…`  how many there are, and their bytes
local function keptKey(load) return 'kept:' .. load:sub(6) end

-- Smaller results take less than the rest of their record does.
local LEAST_KEPT = 128

-- For how long a result is kept, in ms: `keep` is the field of its request's record.
local function keptFor(ttl, keep) return keep and math.min(tonumber(ttl), tonumber(keep)) or ttl end

-- Collects the results of a call that are kept; `now` is Redis's time in ms.
local function endings(now)
  local noted, bytes = {}, 0
  return {
    note = function(name, kind, size, ttl, keep)
      if not keep or kind ~= 'result' or size < LEAST_KEPT then return end
      noted[#noted + 1] = string.format('%.0f', now + keptFor(ttl, keep))
      noted[#noted + 1] = size .. '|' .. name
      bytes = bytes + size
    end,
    write = function(load)
      if #noted == 0 then return end
      redis.pcall('ZADD', keptKey(load), unpack(noted))
      local sum = readLoads(load, {'kept'})
      sum.kept.items = sum.kept.items + #noted / 2
      sum.kept.bytes = sum.kept.bytes + bytes
      writeLoads(load, sum)
    end,
  }
end

-- Count the body of a job until this time, in ms; it may be counted already.
--   key  of the record that has it
local function keepBody(load, key, bytes, untilMs)
  if bytes < LEAST_KEPT or redis.pcall('ZADD', keptKey(load), untilMs, bytes .. '|' .. key) ~= 1 then return end
  local sum = readLoads(load, {'kept'})
  sum.kept.items, sum.kept.bytes = sum.kept.items + 1, sum.kept.bytes + bytes
  writeLoads(load, sum)
end

-- Count it no longer, if it is counted.
local function dropBody(load, key, bytes)
  if bytes < LEAST_KEPT or redis.pcall('ZREM', keptKey(load), bytes .. '|' .. key) ~= 1 then return end
  local sum = readLoads(load, {'kept'})
  sum.kept.items, sum.kept.bytes = sum.kept.items - 1, sum.kept.bytes - bytes
  writeLoads(load, sum)
end

-- Drop the results of so many of these members; `sum` is the field `kept`, and is written.
local function dropMembers(load, sum, members)
  for i = 1, #members, 2 do
    local bytes, name = members[i]:match('^(%d+)|(.*)$')
    if name then redis.pcall('HDEL', name:sub(1, 4) == 'job:' and name or 'out:' .. name, 'body') end
    sum.items = sum.items - 1
    sum.bytes = sum.bytes - tonumber(bytes or '0')
  end
  writeLoads(load, {kept = sum})
end

-- Drop the results that go first until at most so many bytes are left, but at most so many results.
local function dropKept(load, sum, mostBytes, most)
  local dropped = {}
  local left = sum.bytes
  while left > mostBytes and #dropped < 2 * most do
    local popped = redis.pcall('ZPOPMIN', keptKey(load))
    if popped.err or #popped == 0 then break end
    left = left - tonumber(popped[1]:match('^%d+') or '0')
    dropped[#dropped + 1] = popped[1]
    dropped[#dropped + 1] = popped[2]
  end
  if #dropped > 0 then dropMembers(load, sum, dropped) end
end
