-- load.lua: what lies in the queue, counted in requests and in bytes of their frames, for each
-- model, each tenant, and all together. Every script that admits or ends a request includes this
-- file.
--   key `load:…`  hash: `m:<model>`, `t:<tenant>` and `all`, each `<requests> <bytes>`
--   key `open:…`  hash: each request that is counted, as its outcome's key without `out:`, with its
--                 bytes; for a step `<bytes>|<step>|<sequence>`; for a brief request all that is
--                 known of it, see below
-- A request is let go exactly once, since it is taken out of `open` with what it was counted for.
-- So a script may let go what another one has let go before, or what never was counted. Nothing
-- that somebody's hand has done to these keys makes a script fail: recount.lua puts them right.
-- A request is brief if it has no Idempotency-Key, belongs to no generator, and its client waits
-- for it: nobody will ask for it under a key, and nothing is noted of it while it runs. It has no
-- record of its own before it ends (outcome.lua), only its field in `open`, which is written and
-- removed together with those of other requests:
--   `<bytes>|<step>|<sequence>|<at>|<keptUntil>|<pin>|<gateway>|<ended>|<entry>|<terms>`
--   step, sequence   0 and '' without a sequence    at  Redis ms at which it was admitted
--   keptUntil        Redis ms after which it is forgotten if every process has died
--   ended            '1' for a step that has ended while it is still queued
--   entry            id in the ready stream of one without a sequence, or PARKED (parking.lua)
local BRIEF = '^(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|([^|]*)|([^|]*)|([01])|([^|]*)|(.*)$'

local function openKey(load) return 'open:' .. load:sub(6) end

-- Returns what is known of a request as a table, if it is a brief one.
--   `text`  its field in `open`
local function parseBrief(text)
  local bytes, step, sequence, at, keptUntil, pin, gateway, ended, entry, terms = (text or ''):match(BRIEF)
  if not bytes then return nil end
  return {bytes = bytes, step = step, sequence = sequence, at = at, keptUntil = keptUntil, pin = pin, gateway = gateway,
    ended = ended, entry = entry, terms = terms}
end

local function briefText(b)
  return table.concat({b.bytes, b.step, b.sequence, b.at, b.keptUntil, b.pin, b.gateway, b.ended, b.entry, b.terms}, '|')
end

local function readBrief(load, name)
  local found = redis.pcall('HMGET', openKey(load), name)
  return not found.err and parseBrief(found[1]) or nil
end

local function writeBrief(load, name, brief) redis.call('HSET', openKey(load), name, briefText(brief)) end

-- Whether what is counted of a request says that it is a step of a sequence.
local function isStepsSize(size) return size:find('^%d+|[1-9]') ~= nil end

local function loadOf(text)
  local items, bytes = (text or ''):match('^(%d+) (%d+)')
  return {items = tonumber(items or '0'), bytes = tonumber(bytes or '0')}
end

-- Returns the loads of these fields, by field.
local function readLoads(load, fields)
  local found = redis.pcall('HMGET', load, unpack(fields))
  local loads = {}
  for i = 1, #fields do loads[fields[i]] = loadOf(not found.err and found[i] or nil) end
  return loads
end

-- A field without requests is removed, so that tenants who are gone take no memory. A recount may
-- write as many fields as there are tenants, and Lua unpacks no list without end.
local function writeLoads(load, loads)
  local kept, gone = {}, {}
  for field, sum in pairs(loads) do
    if sum.items > 0 then
      kept[#kept + 1] = field
      kept[#kept + 1] = string.format('%.0f %.0f', sum.items, math.max(sum.bytes, 0))
    else
      gone[#gone + 1] = field
    end
  end
  for i = 1, #kept, 1000 do redis.pcall('HSET', load, unpack(kept, i, math.min(i + 999, #kept))) end
  for i = 1, #gone, 1000 do redis.pcall('HDEL', load, unpack(gone, i, math.min(i + 999, #gone))) end
end

-- The fields that a request is counted in: its model's, its tenant's, and that of all.
-- `name` begins with `{tag}:model:tenant`, as its outcome's key does without `out:`.
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

-- Count requests no longer. Each is taken out once, however often this is called for it.
--   names    of requests, as in `open`
--   outside  whether they have ended while they may still be in the queue. A step stays counted
--            until a worker has taken it out, since its frame stays there: others wait behind it.
--            Other requests are withdrawn when they end
--   sizes    their fields in `open` where the caller has read them, by name
local function letGo(load, names, outside, sizes)
  if #names == 0 then return end
  local open = openKey(load)
  sizes = sizes or readOpen(load, names)
  local gone, ofTenants, seen = {}, {}, {}
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
      sum.bytes = sum.bytes + tonumber(size:match('^%d+') or '0')
    end
  end
  if #gone == 0 then return end
  redis.call('HDEL', open, unpack(gone))
  local loads, fields = {}, {}
  for tenant, left in pairs(ofTenants) do
    for _, field in ipairs(loadFields(tenant)) do
      local sum = loads[field]
      if not sum then
        sum = {items = 0, bytes = 0}
        loads[field] = sum
        fields[#fields + 1] = field
      end
      sum.items, sum.bytes = sum.items + left.items, sum.bytes + left.bytes
    end
  end
  local now = readLoads(load, fields)
  for field, sum in pairs(now) do
    sum.items = sum.items - loads[field].items
    sum.bytes = sum.bytes - loads[field].bytes
  end
  writeLoads(load, now)
end
