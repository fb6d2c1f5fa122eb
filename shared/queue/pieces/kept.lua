-- kept.lua: results that clients may fetch later, under an Idempotency-Key or for a request in the
-- background. The kind of a request's end stays as long as the request's key. The result stays for
-- a shorter time, and only while all results together stay within their budget. Scripts that write
-- or drop a result include this file. Beside load.lua:
--   key `kept:…`  sorted set: bytes, and the request as in `open` (records/counts.ts), by the ms at
--                 which the result goes
--   field `kept` of `load:…`  how many results there are, and their bytes
local function keptKey(load) return 'kept:' .. load:sub(6) end

-- Bytes. A smaller result takes less than the rest of the record, and does not count.
local LEAST_KEPT = 128

-- Returns how many ms a result is kept: `keep` is a field of the request's record.
local function keptFor(ttl, keep) return keep and math.min(tonumber(ttl), tonumber(keep)) or ttl end

-- Collects the results of a call that are to be kept; `now` is Redis's time in ms.
local function endings(now)
  local noted, bytes = {}, 0
  return {
    note = function(name, kind, size, ttl, keep)
      if not keep or kind ~= 'result' or size < LEAST_KEPT then return end
      noted[#noted + 1] = string.format('%d', now + keptFor(ttl, keep))
      noted[#noted + 1] = TEXT.sized{bytes = size, name = name}
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

-- Count the body of a job until this time, in ms, unless the body counts already.
--   key  of the record that has the body
local function keepBody(load, key, bytes, untilMs)
  if bytes < LEAST_KEPT or redis.pcall('ZADD', keptKey(load), untilMs, TEXT.sized{bytes = bytes, name = key}) ~= 1 then return end
  local sum = readLoads(load, {'kept'})
  sum.kept.items, sum.kept.bytes = sum.kept.items + 1, sum.kept.bytes + bytes
  writeLoads(load, sum)
end

-- Stop counting the body of a job, if the body counts.
local function dropBody(load, key, bytes)
  if bytes < LEAST_KEPT or redis.pcall('ZREM', keptKey(load), TEXT.sized{bytes = bytes, name = key}) ~= 1 then return end
  local sum = readLoads(load, {'kept'})
  sum.kept.items, sum.kept.bytes = sum.kept.items - 1, sum.kept.bytes - bytes
  writeLoads(load, sum)
end

-- Drop these results: `members` are pairs of member and score, `sum` is the field `kept`, which
-- this writes.
local function dropMembers(load, sum, members)
  for i = 1, #members, 2 do
    local bytes, name = members[i]:match(PATTERN.sized(bytes, name))
    if name then redis.pcall('HDEL', name:sub(1, 4) == 'job:' and name or 'out:' .. name, 'body') end
    sum.items = sum.items - 1
    sum.bytes = sum.bytes - tonumber(bytes or '0')
  end
  writeLoads(load, {kept = sum})
end

-- Drop the results that go first, until at most `mostBytes` are left, but at most `most` results.
local function dropKept(load, sum, mostBytes, most)
  local dropped = {}
  local left = sum.bytes
  while left > mostBytes and #dropped < 2 * most do
    local popped = redis.pcall('ZPOPMIN', keptKey(load))
    if popped.err or #popped == 0 then break end
    left = left - tonumber(popped[1]:match(PATTERN.sized(bytes)) or '0')
    dropped[#dropped + 1] = popped[1]
    dropped[#dropped + 1] = popped[2]
  end
  if #dropped > 0 then dropMembers(load, sum, dropped) end
end
