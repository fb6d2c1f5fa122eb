-- load.lua: what lies in the queue, counted in requests and in bytes of their frames, for each
-- model, each tenant, and all together. Scripts include this file that admit a request or end one.
--   key `load:…`  hash: `m:<model>`, `t:<tenant>` and `all`, each `<requests> <bytes>`
--   key `open:…`  hash: each request that is counted, as its outcome's key without `out:`, with its
--                 bytes; for a step `<bytes>|<step>|<sequence>`
-- A request is let go exactly once, since it is taken out of `open` with what it was counted for.
-- So a script may let go what another one has let go before, or what never was counted. Nothing
-- that somebody's hand has done to these keys makes a script fail: recount.lua puts them right.
local function openKey(load) return 'open:' .. load:sub(6) end

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
-- `name` is its outcome's key without `out:`, `{tag}:model:tenant:id`.
local function loadFields(name)
  local model, tenant = name:match('^[^:]*:([^:]*):([^:]*)')
  return {'m:' .. model, 't:' .. tenant, 'all'}
end

-- Let requests go, each once, whatever is called how often.
--   names    of requests, as in `open`
--   outside  whether they have ended while they may still be in the queue. A step stays counted
--            until a worker has taken it out, since its frame stays there: others wait behind it.
--            Other requests are withdrawn when they end
local function letGo(load, names, outside)
  if #names == 0 then return end
  local open = openKey(load)
  local sizes = redis.pcall('HMGET', open, unpack(names))
  if sizes.err then return end
  local gone, loads, fields, seen = {}, {}, {}, {}
  for i = 1, #names do
    local size = sizes[i]
    if size and not seen[names[i]] and not (outside and size:find('|', 1, true)) then
      seen[names[i]] = true
      gone[#gone + 1] = names[i]
      for _, field in ipairs(loadFields(names[i])) do
        local sum = loads[field]
        if not sum then
          sum = {items = 0, bytes = 0}
          loads[field] = sum
          fields[#fields + 1] = field
        end
        sum.items = sum.items + 1
        sum.bytes = sum.bytes + tonumber(size:match('^%d+') or '0')
      end
    end
  end
  if #gone == 0 then return end
  redis.call('HDEL', open, unpack(gone))
  local now = readLoads(load, fields)
  for field, sum in pairs(now) do
    sum.items = sum.items - loads[field].items
    sum.bytes = sum.bytes - loads[field].bytes
  end
  writeLoads(load, now)
end
