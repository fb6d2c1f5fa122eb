-- load.lua: the counts of the queue, in requests and in bytes of their frames, for each model, each
-- tenant, and all together. Every script that admits or ends a request includes this file.
--   key `load:…`  hash: the sums of `m:<model>`, `t:<tenant>` and `all` (records/counts.ts); and of
--                 `g:k:<key>` and `g:t:<tenant>`, the generations of owners who may have so many;
--                 of `g:j`, the requests that run jobs; and of `e:<state>:<model>`, all jobs that
--                 have ever ended so, without bytes; of models that are gone under `_other`
--   key `open:…`  hash: the name of each request that counts, as the outcome's key without `out:`,
--                 with the request's bytes; for a step the first three facts of a brief request;
--                 for a brief request all facts; for a generation that counts for its owners, and
--                 for the request of a job, the facts of an `owned` one (records/requests.ts)
-- A request leaves the counts exactly once, because the field in `open` goes together with the
-- bytes. So a script may let go a request that another script has let go before, or that never
-- counted. Nothing that a person writes to these keys by hand makes a script fail: recount.lua
-- repairs the counts. A request is brief if it has no Idempotency-Key, belongs to no generator, and
-- has a client that waits. No client will ask for a brief request under a key, and scripts note
-- nothing while the request runs. Before the end a brief request has no record (outcome.lua), only
-- a field in `open`, which a call writes and removes together with the fields of other requests.
-- record brief: unpackBrief packBrief
-- include usage.lua
local function openKey(load) return 'open:' .. load:sub(6) end
local function ratesKey(load) return load .. ':rates' end

-- Returns the facts of a brief request, or nil for any other request.
local function readBrief(load, name)
  local found = redis.pcall('HMGET', openKey(load), name)
  return not found.err and unpackBrief(found[1] or '') or nil
end

local function writeBrief(load, name, brief) redis.call('HSET', openKey(load), name, packBrief(brief)) end

-- Whether a field of `open` belongs to a step of a sequence.
local function isStepsSize(size) return (size:match(PATTERN.brief(step)) or '0') ~= '0' end

-- Returns the fields that count a generation for its owners, by its field in `open`; the tokens
-- that it was charged: the name of a rate and its period, and the cost; and the key that uses them,
-- if anybody counts that. Charges and key have with them how many tokens the prompt was taken for,
-- and how many choices the generation makes.
local function ownerFields(size)
  local owners, fields, charges, user = size:match(PATTERN.owned(owners)), {}, {}, nil
  for name in (owners or ''):gmatch('[^,]+') do
    local rate, cost, prompt, choices, period = name:match('^(.*)=(%d+)-(%d+)-(%d+)-(%d+)$')
    local key, ofUser, choicesOfUser = name:match('^u:(.*)=(%d+)-(%d+)$')
    if rate then
      charges[#charges + 1] = {rate = rate, period = tonumber(period), cost = tonumber(cost), prompt = tonumber(prompt),
        choices = tonumber(choices)}
    elseif key then
      user = {key = key, prompt = tonumber(ofUser), choices = tonumber(choicesOfUser)}
    else
      fields[#fields + 1] = 'g:' .. name
    end
  end
  return fields, charges, user
end

-- Returns how many tokens of the prompt and of the answer a generation has used, which ends now.
-- The last record of a log says so, unless the generation was ended from outside: then that record
-- has no token, and each record before has a token of each choice that still ran.
--   by       a charge, or the user
--   isTaken  tells whether a worker has the generation; nil if its log tells all
local function usedBy(name, by, isTaken)
  local log = 'log:' .. name
  local last = redis.pcall('LINDEX', log, -1)
  last = type(last) == 'string' and last or ''
  local prompt, completion = last:match('"usage":{"prompt_tokens":(%d+),"completion_tokens":(%d+)}')
  if prompt then return tonumber(prompt), tonumber(completion) end
  local records = last == '' and 0 or redis.call('LLEN', log) - (last:find('"final":true', 1, true) and 1 or 0)
  if records == 0 and not (isTaken and isTaken()) then return 0, 0 end
  if by.choices == 1 then return by.prompt, records end
  local tokens = 0
  for from = 0, records - 1, 1000 do
    for _, record in ipairs(redis.call('LRANGE', log, from, math.min(from + 999, records - 1))) do
      for _ in record:gmatch('"tokens":%[%d') do tokens = tokens + 1 end
    end
  end
  return by.prompt, tokens
end

local function loadOf(text)
  local items, bytes = (text or ''):match(PATTERN.load(items, bytes))
  return {items = tonumber(items or '0'), bytes = tonumber(bytes or '0')}
end

-- Returns the loads of these fields, by field.
local function readLoads(load, fields)
  local found = redis.pcall('HMGET', load, unpack(fields))
  local loads = {}
  for i = 1, #fields do loads[fields[i]] = loadOf(not found.err and found[i] or nil) end
  return loads
end

-- Removes a field without requests, so that tenants who are gone take no memory. A recount may
-- write as many fields as there are tenants, and Lua's unpack takes a limited number of values.
local function writeLoads(load, loads)
  local kept, gone = {}, {}
  for field, sum in pairs(loads) do
    if sum.items > 0 then
      kept[#kept + 1] = field
      kept[#kept + 1] = TEXT.load{items = sum.items, bytes = math.max(sum.bytes, 0)}
    else
      gone[#gone + 1] = field
    end
  end
  for i = 1, #kept, 1000 do redis.pcall('HSET', load, unpack(kept, i, math.min(i + 999, #kept))) end
  for i = 1, #gone, 1000 do redis.pcall('HDEL', load, unpack(gone, i, math.min(i + 999, #gone))) end
end

-- Give back the tokens that generations were charged and have not used, or take those that they
-- have used beyond.
--   unused  tokens and period by the name of a rate
local function giveBack(load, unused)
  local names, us = {}, nil
  for name in pairs(unused) do names[#names + 1] = name end
  local states = readLoads(ratesKey(load), names)
  for name, state in pairs(states) do
    local tokens, period = unused[name].tokens, unused[name].period
    if state.bytes > 0 then period = state.bytes end
    if tokens < 0 then
      us = us or clockUs()
      state.items = math.max(state.items, us)
    end
    state.items, state.bytes = state.items - tokens * period, period
  end
  writeLoads(ratesKey(load), states)
end

-- Returns the fields that count a request: of the model, of the tenant, and of all.
-- `name` begins with `{tag}:model:tenant`, as an outcome's key does without `out:`.
local function loadFields(name)
  local model, tenant = name:match('^[^:]*:([^:]*):([^:]*)')
  return {'m:' .. model, 't:' .. tenant, 'all'}
end

-- Returns the fields of these requests in `open`, by name.
local function readOpen(load, names)
  local sizes = {}
  if #names == 0 then return sizes end
  local found = redis.pcall('HMGET', openKey(load), unpack(names))
  for i = 1, #names do sizes[names[i]] = not found.err and found[i] or nil end
  return sizes
end

-- How many jobs have ended in this script, by the field that counts them (job.lua). The counts of
-- requests are read and written at a job's end anyway, so these cost no command.
local endedJobs = {}

-- Stop counting requests, and count the ends of jobs. Each request leaves the counts once, however
-- often a script calls this.
--   names    of requests, as in `open`
--   outside  whether the requests have ended while they may still be in the queue. A step counts
--            until a worker has removed the entry, because the frame stays there: other steps wait
--            behind the step. Other requests leave the queue when they end
--   sizes    their fields in `open`, by name, if the caller has read the fields
--   isTaken  tells whether a worker has the request, if a caller outside of the worker knows
local function letGo(load, names, outside, sizes, isTaken)
  if #names == 0 and not next(endedJobs) then return end
  local open = openKey(load)
  sizes = sizes or readOpen(load, names)
  local gone, ofTenants, seen, loads, fields, unused = {}, {}, {}, {}, {}, {}
  local function leave(field, items, bytes)
    local sum = loads[field]
    if not sum then
      sum = {items = 0, bytes = 0}
      loads[field] = sum
      fields[#fields + 1] = field
    end
    sum.items, sum.bytes = sum.items + items, sum.bytes + bytes
  end
  for i = 1, #names do
    local name = names[i]
    local size = sizes[name]
    if size and not seen[name] and not (outside and isStepsSize(size)) then
      seen[name] = true
      gone[#gone + 1] = name
      local tenant = name:match('^[^:]*:[^:]*:[^:]*')
      local sum = ofTenants[tenant] or {items = 0, bytes = 0}
      ofTenants[tenant] = sum
      sum.items = sum.items + 1
      sum.bytes = sum.bytes + tonumber(size:match(PATTERN.brief(bytes)) or '0')
      if size:match(PATTERN.owned(owners)) then
        local owners, charges, user = ownerFields(size)
        for _, field in ipairs(owners) do leave(field, 1, 0) end
        local prompt, completion
        if user or charges[1] then prompt, completion = usedBy(name, user or charges[1], isTaken) end
        if user then
          local sums = usageOf(name, user.key)
          sums.tokensIn, sums.tokensOut = sums.tokensIn + prompt, sums.tokensOut + completion
        end
        for _, charge in ipairs(charges) do
          local sum = unused[charge.rate] or {tokens = 0, period = charge.period}
          unused[charge.rate] = sum
          sum.tokens = sum.tokens + charge.cost - prompt - completion
        end
      end
    end
  end
  writeUsage(load)
  for field, items in pairs(endedJobs) do leave(field, -items, 0) end
  endedJobs = {}
  if #fields == 0 and #gone == 0 then return end
  if #gone > 0 then redis.call('HDEL', open, unpack(gone)) end
  for tenant, left in pairs(ofTenants) do
    for _, field in ipairs(loadFields(tenant)) do leave(field, left.items, left.bytes) end
  end
  local now = readLoads(load, fields)
  for field, sum in pairs(now) do
    sum.items = sum.items - loads[field].items
    sum.bytes = sum.bytes - loads[field].bytes
  end
  writeLoads(load, now)
  if next(unused) then giveBack(load, unused) end
end
