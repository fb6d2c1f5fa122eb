#!lua flags=allow-oom
-- recount.lua: repair the counts of the queue (load.lua), a page to a call. Counts become wrong
-- only if a person changes keys by hand, or if a record expires before its request has ended.
--   KEYS.load     the counts
--   KEYS.turn     the process that makes this round holds it
--   ARGV.cursor   of the page; '' for the first
--   ARGV.page     requests of a page, about
--   ARGV.everyMs  ms from the beginning of a round to the next round of any process
--   Returns {cursor, mended}   `mended` requests or fields were wrong; the next page is at
--                              `cursor`, which is '0' at the end of the round
--           {'', 0}            the last round is not so long ago
-- include ../pieces/load.lua
-- include ../pieces/kept.lua
-- include ../pieces/later.lua
-- include ../pieces/rates.lua
-- include ../pieces/sequence.lua
local load, open, kept, later = KEYS.load, openKey(KEYS.load), keptKey(KEYS.load), laterKey(KEYS.load)
local cursor, mended = ARGV.cursor, 0
-- include ../pieces/time.lua

-- Above this a round counts again only if the number of requests is wrong, because so many take
-- Redis a millisecond.
local OFTEN = 2000

local function removeUnlessA(kind, key)
  local found = redis.call('TYPE', key).ok
  if found == kind or found == 'none' then return end
  redis.call('UNLINK', key)
  mended = mended + 1
end

-- Whether a request in the counts has left the queue.
local function hasLeft(name, size)
  local base = name:match('^([^:]*:[^:]*):[^:]*:')
  if not base then return true end
  local brief = unpackBrief(size)
  if brief then
    local isOpen = brief.ended == '0' and tonumber(brief.keptUntil) > now
    if isOpen and redis.call('EXISTS', 'out:' .. name) == 0 then return false end
  else
    local out = redis.pcall('HMGET', 'out:' .. name, 'digest', 'kind')
    if not out.err and out[1] and not out[2] then return false end
  end
  -- A step that has ended still counts while it is in the queue.
  local step, sequence = size:match(PATTERN.brief(step, sequence))
  if not step or step == '0' then return true end
  local whole, seq = pcall(sequenceOf, base, sequence)
  return not whole or not seq or seq.done >= tonumber(step) or seq.next < tonumber(step)
end

local function look(names)
  local gone = {}
  for i = 1, #names, 2 do
    if hasLeft(names[i], names[i + 1]) then gone[#gone + 1] = names[i] end
  end
  mended = mended + #gone
  letGo(load, gone)
end

-- Count again from `open`. Fields that are no loads of requests stay.
local function count()
  local found = redis.call('HGETALL', open)
  local sums = {}
  for i = 1, #found, 2 do
    for _, field in ipairs(loadFields(found[i])) do
      local sum = sums[field] or {items = 0, bytes = 0}
      sums[field] = sum
      sum.items = sum.items + 1
      sum.bytes = sum.bytes + tonumber(found[i + 1]:match(PATTERN.brief(bytes)) or '0')
    end
    for _, field in ipairs(ownerFields(found[i + 1])) do
      sums[field] = sums[field] or {items = 0, bytes = 0}
      sums[field].items = sums[field].items + 1
    end
  end
  local before = redis.call('HGETALL', load)
  local changed = {}
  for i = 1, #before, 2 do
    local field = before[i]
    if (field:match('^[mtg]:') or field == 'all') and not sums[field] then changed[field] = {items = 0, bytes = 0} end
    local sum, was = sums[field], loadOf(before[i + 1])
    if sum and sum.items == was.items and sum.bytes == was.bytes then sums[field] = nil end
  end
  for field, sum in pairs(sums) do changed[field] = sum end
  for _ in pairs(changed) do mended = mended + 1 end
  writeLoads(load, changed)
end

local function countKept()
  local sum = {items = 0, bytes = 0}
  for _, member in ipairs(redis.call('ZRANGE', kept, 0, -1)) do
    sum.items = sum.items + 1
    sum.bytes = sum.bytes + tonumber(member:match(PATTERN.sized(bytes)) or '0')
  end
  mended = mended + 1
  writeLoads(load, {kept = sum})
end

-- The same for jobs that wait for their time.
local function countLaterAgain()
  local sums, before = {later = {items = 0, bytes = 0}}, redis.call('HKEYS', load)
  for _, field in ipairs(before) do
    if field:sub(1, 2) == 'l:' then sums[field] = {items = 0, bytes = 0} end
  end
  for _, member in ipairs(redis.call('ZRANGE', later, 0, -1)) do
    local bytes, name = member:match(PATTERN.sized(bytes, name))
    local tenant = bytes and name:match('^[^:]*:[^:]*:([^:]*)')
    for _, field in ipairs(tenant and {'later', 'l:' .. tenant} or {}) do
      local sum = sums[field] or {items = 0, bytes = 0}
      sums[field] = sum
      sum.items, sum.bytes = sum.items + 1, sum.bytes + bytes
    end
  end
  mended = mended + 1
  writeLoads(load, sums)
end

-- Forget rates whose owners are rested (rates.lua), which are as good as none. A round looks at
-- some of the fields, so that it costs the same with 100,000 owners.
local function forgetRested()
  local some, rested = redis.call('HRANDFIELD', ratesKey(load), 1000, 'WITHVALUES'), {}
  for i = 1, #some, 2 do
    if loadOf(some[i + 1]).items <= now * 1000 then rested[#rested + 1] = some[i] end
  end
  if #rested > 0 then redis.call('HDEL', ratesKey(load), unpack(rested)) end
end

if cursor == '' then
  if not redis.call('SET', KEYS.turn, '1', 'NX', 'PX', ARGV.everyMs) then return {'', 0} end
  removeUnlessA('hash', load)
  removeUnlessA('hash', open)
  removeUnlessA('hash', ratesKey(load))
  removeUnlessA('zset', kept)
  removeUnlessA('zset', later)
  cursor = '0'
end
local page = redis.call('HSCAN', open, cursor, 'COUNT', ARGV.page)
look(page[2])
if page[1] == '0' then
  local length, sums = redis.call('HLEN', open), readLoads(load, {'all', 'kept', 'later'})
  if length <= OFTEN or length ~= sums.all.items then count() end
  if redis.call('ZCARD', kept) ~= sums.kept.items then countKept() end
  if redis.call('ZCARD', later) ~= sums.later.items then countLaterAgain() end
  forgetRested()
end
return {page[1], mended}
