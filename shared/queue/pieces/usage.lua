-- usage.lua: what clients have used, in the scripts that admit and end requests (load.lua). A
-- script notes what its requests use, and `writeUsage` writes all of it at once, because a write
-- for each request would cost too much.
--   key `usage:…:<tenant>:<day>`  hash: by key and model the sums of that UTC day
--   key `spent:…:<month>`         hash: by the name of an owner (rates.ts) what it has used in the
--                                 month and in its last day, for quotas
-- record usage: unpackUsage packUsage newUsage
-- record taken: unpackTaken packTaken
-- include clock.lua
local DAY_MS = 86400000
-- For how long the sums of a day stay, unless the gateway that admits says otherwise.
local USAGE_DAYS = 90
-- Past so many pairs of key and model in a day the rest counts as one.
local MOST_PAIRS, OTHERS = 1000, TEXT.usagePair{key = 'other', model = 'other'}

-- Returns the UTC day and month of a time in Redis µs, as texts: Hinnant's "civil from days".
local function dateOf(us)
  local days = math.floor(us / 1000 / DAY_MS) + 719468
  local era = math.floor(days / 146097)
  local ofEra = days - era * 146097
  local year = math.floor((ofEra - math.floor(ofEra / 1460) + math.floor(ofEra / 36524) - math.floor(ofEra / 146096)) / 365)
  local ofYear = ofEra - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local fromMarch = math.floor((5 * ofYear + 2) / 153)
  local day = ofYear - math.floor((153 * fromMarch + 2) / 5) + 1
  local month = fromMarch < 10 and fromMarch + 3 or fromMarch - 9
  local text = string.format('%04d-%02d', year + era * 400 + (month <= 2 and 1 or 0), month)
  return text .. string.format('-%02d', day), text
end

local function spentKey(load, month) return 'spent:' .. load:sub(6) .. ':' .. month end

-- What this script's requests have used, by `{tag}:model:tenant` and key.
local noted = {}

-- Returns the sums of a key and model, to which the caller adds.
--   name  of a request, as in `open`
local function usageOf(name, key)
  local of = name:match('^[^:]*:[^:]*:[^:]*')
  local keys = noted[of] or {}
  noted[of] = keys
  keys[key] = keys[key] or newUsage()
  return keys[key]
end

-- Note what a worker says that a request took; '' for a request whose usage nobody counts.
local function noteSpent(name, spent, steps)
  local key, computeUs, bytesOut = spent:match(PATTERN.spent(key, computeUs, bytesOut))
  if not key then return end
  local sums = usageOf(name, key)
  sums.steps, sums.computeUs, sums.bytesOut = sums.steps + steps, sums.computeUs + computeUs, sums.bytesOut + bytesOut
end

local function addUsage(to, sums)
  for name, value in pairs(sums) do to[name] = to[name] + value end
end

-- Read fields of a hash of records, of which a person may have made something else.
local function readSums(key, fields, unpackOne)
  local sums = {}
  for from = 1, #fields, MOST_PAIRS do
    local to = math.min(from + MOST_PAIRS - 1, #fields)
    local found = redis.pcall('HMGET', key, unpack(fields, from, to))
    for i = from, to do
      local text = not found.err and found[i - from + 1]
      sums[fields[i]] = text and unpackOne(text) or nil
    end
  end
  return sums
end

local function writeSums(key, fields, sums, packOne)
  for from = 1, #fields, MOST_PAIRS do
    local values = {}
    for i = from, math.min(from + MOST_PAIRS - 1, #fields) do
      values[#values + 1], values[#values + 2] = fields[i], packOne(sums[fields[i]])
    end
    redis.pcall('HSET', key, unpack(values))
  end
end

-- Let a hash live for so long from a field on that is new to it, or that no admission has written
-- before: only admissions know for how long.
local function keep(key, isNew, isFirst, keptMs, moreMs)
  if isFirst and keptMs then redis.pcall('PEXPIRE', key, keptMs + moreMs) end
  if isNew and not keptMs then redis.pcall('PEXPIRE', key, USAGE_DAYS * DAY_MS + moreMs, 'NX') end
end

-- Add to the sums of a tenant's day.
--   used  by key and model
local function writeDay(key, used, keptMs)
  local pairsUsed = {}
  for pair in pairs(used) do pairsUsed[#pairsUsed + 1] = pair end
  local before, isNew, isFirst = readSums(key, pairsUsed, unpackUsage), false, false
  for i = 1, #pairsUsed do
    local of = before[pairsUsed[i]]
    isNew, isFirst = isNew or not of, isFirst or not of or of.requests + of.refused == 0
  end
  if isNew then
    local room, others = MOST_PAIRS - (tonumber(redis.pcall('HLEN', key)) or 0), {}
    for i = 1, #pairsUsed do
      local pair = pairsUsed[i]
      if not before[pair] and room <= 0 then others[#others + 1] = pair end
      if not before[pair] then room = room - 1 end
    end
    if #others > 0 then before[OTHERS] = readSums(key, {OTHERS}, unpackUsage)[OTHERS] end
    for i = 1, #others do
      used[OTHERS] = used[OTHERS] or newUsage()
      addUsage(used[OTHERS], used[others[i]])
      used[others[i]] = nil
    end
  end
  local fields = {}
  for pair, sums in pairs(used) do
    fields[#fields + 1] = pair
    if before[pair] then addUsage(sums, before[pair]) end
  end
  writeSums(key, fields, used, packUsage)
  keep(key, isNew, isFirst, keptMs, 0)
end

-- Add to what owners have used in the month and the day.
--   used  requests, tokens and µs of each owner, by name
local function writeSpent(load, used, day, month, keptMs)
  local key, names, isNew, isFirst = spentKey(load, month), {}, false, false
  for name in pairs(used) do names[#names + 1] = name end
  local sums = readSums(key, names, unpackTaken)
  for i = 1, #names do
    local name = names[i]
    local now, of = used[name], sums[name]
    isNew, isFirst = isNew or not of, isFirst or not of or of.requests == 0
    of = of or {day = day, dayRequests = 0, dayTokens = 0, dayComputeUs = 0, requests = 0, tokens = 0, computeUs = 0}
    if of.day ~= day then of.day, of.dayRequests, of.dayTokens, of.dayComputeUs = day, 0, 0, 0 end
    of.dayRequests, of.requests = of.dayRequests + now.requests, of.requests + now.requests
    of.dayTokens, of.tokens = of.dayTokens + now.tokens, of.tokens + now.tokens
    of.dayComputeUs, of.computeUs = of.dayComputeUs + now.computeUs, of.computeUs + now.computeUs
    sums[name] = of
  end
  writeSums(key, names, sums, packTaken)
  -- Operators find the tenants of a day here, too.
  keep(key, isNew, isFirst, keptMs, 31 * DAY_MS)
end

-- Set `used` of quotas, each with the `name` of its owner and a `field` of the record.
local function readQuotas(load, quotas, us)
  local names = {}
  for i = 1, #quotas do names[i] = quotas[i].name end
  local day, month = dateOf(us)
  local taken = readSums(spentKey(load, month), names, unpackTaken)
  for i = 1, #quotas do
    local of = taken[names[i]]
    local isPast = not of or quotas[i].field:sub(1, 3) == 'day' and of.day ~= day
    quotas[i].used = isPast and 0 or of[quotas[i].field]
  end
end

-- Write what was noted. `keptMs` says for how long; nil if the caller does not know.
local function writeUsage(load, keptMs)
  if not next(noted) then return end
  local day, month = dateOf(clockUs())
  local days, owners = {}, {}
  local function count(name, sums)
    local of = owners[name] or {requests = 0, tokens = 0, computeUs = 0}
    owners[name] = of
    of.requests, of.computeUs = of.requests + sums.requests, of.computeUs + sums.computeUs
    of.tokens = of.tokens + sums.tokensIn + sums.tokensOut
  end
  for of, keys in pairs(noted) do
    local model, tenant = of:match('^[^:]*:([^:]*):(.*)$')
    local hash = 'usage:' .. load:sub(6) .. ':' .. tenant .. ':' .. day
    days[hash] = days[hash] or {}
    for key, sums in pairs(keys) do
      count('t:' .. tenant, sums)
      -- There may be as many subjects of tokens as people, and none has a quota.
      if key ~= '-' and key:sub(1, 4) ~= 'jwt:' then count('k:' .. key, sums) end
      local pair = TEXT.usagePair{key = key, model = model}
      if days[hash][pair] then addUsage(days[hash][pair], sums) else days[hash][pair] = sums end
    end
  end
  noted = {}
  for hash, used in pairs(days) do writeDay(hash, used, keptMs) end
  writeSpent(load, owners, day, month, keptMs)
end
