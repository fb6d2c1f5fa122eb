-- limits.lua: whether there is room for what an admission call brings, by what is counted of the
-- queue (load.lua). A piece of admit.lua. The limits are JSON, with -1 for none:
--   models   most requests, bytes and live sequences of each model of the call, by its name
--   tenants  most requests and bytes of each tenant of the call, by its name
--   all      most bytes of all requests
--   kept     most bytes of the results that are kept for who comes back (kept.lua)
--   keep     ms for which they are kept; a request with a longer outcome TTL is one of these
--   again    whether a request that finds no room may come again: other buckets may leave some
--   jobs     `models`, without sequences, and `all` as they are for jobs, which leave a tenth to
--            those whose clients wait; absent where the call brings none
-- In a cluster they are the bucket's own, which the gateway works out from what it knows of the
-- others.
--   The names of limits, in the order in which they are looked at: 'total-bytes' 'model-requests'
--   'model-bytes' 'tenant-requests' 'tenant-bytes'
-- include ../kept.lua

-- How long the live sequences of a model are not counted again, in ms, while there is room: to
-- count them takes a command for each bucket.
local COUNTED_MS = 1000

local function openLedger(load, json, tags, lanes, first, last, now)
  local limits = cjson.decode(json)
  local fields, known = {'all', 'kept'}, {}
  local function want(field)
    if known[field] then return end
    known[field] = true
    fields[#fields + 1] = field
  end
  for i = 1, #lanes do
    lanes[i].model = lanes[i].base:match(':(.*)$')
    want('m:' .. lanes[i].model)
    want('s:' .. lanes[i].model)
  end
  for a = first, last - 1, 12 do want('t:' .. ARGV[a + 2]:match('^[^:]*')) end
  local loads = readLoads(load, fields)
  local kept = loads.kept
  loads.kept = nil

  -- A model's live sequences, by its name: `items` is how many, `bytes` until when they count as
  -- counted.
  local live, isChanged = {}, false
  for field, sum in pairs(loads) do
    if field:sub(1, 2) == 's:' then
      live[field:sub(3)] = {count = sum.items, counted = sum.bytes, added = 0, exact = false}
      loads[field] = nil
    end
  end
  local opened = {}
  local function add(sum, bytes) sum.items, sum.bytes = sum.items + 1, sum.bytes + bytes end
  local ledger = {limits = limits}

  local function past(now, most) return most >= 0 and now > most end

  -- Returns the name of the limit that is in the way of a request, or nil. `job` is nil for what is
  -- no job.
  function ledger.refuses(modelName, tenantName, bytes, job)
    local model, tenant, all = loads['m:' .. modelName], loads['t:' .. tenantName], loads.all
    local most = job and limits.jobs or limits
    local ofModel, ofTenant = most.models[modelName], limits.tenants[tenantName]
    if past(all.bytes + bytes, most.all) then return 'total-bytes' end
    if past(model.items + 1, ofModel[1]) then return 'model-requests' end
    if past(model.bytes + bytes, ofModel[2]) then return 'model-bytes' end
    if past(tenant.items + 1, ofTenant[1]) then return 'tenant-requests' end
    if past(tenant.bytes + bytes, ofTenant[2]) then return 'tenant-bytes' end
    return nil
  end

  -- Count a request that is admitted. `step` and `sequence` are nil for one without a sequence;
  -- `brief` is what is known of a brief one, else nil.
  function ledger.count(model, tenant, name, bytes, step, sequence, brief)
    add(loads['m:' .. model], bytes)
    add(loads['t:' .. tenant], bytes)
    add(loads.all, bytes)
    opened[#opened + 1] = name
    if brief then
      brief.bytes, brief.step, brief.sequence = bytes, step or '0', sequence or ''
      opened[#opened + 1] = briefText(brief)
    else
      opened[#opened + 1] = step and bytes .. '|' .. step .. '|' .. sequence or bytes
    end
  end

  -- Whether one more sequence may begin; it is counted.
  function ledger.begins(base)
    local model = base:match(':(.*)$')
    local sum, most = live[model], limits.models[model][3]
    if not sum.exact and (sum.counted <= now or sum.count >= most) then
      sum.count, sum.exact, sum.counted = sum.added, true, now + COUNTED_MS
      for tag in tags:gmatch('%S+') do sum.count = sum.count + redis.call('ZCARD', 'live:' .. tag .. ':' .. model) end
    end
    if sum.count >= most then return false end
    sum.count, sum.added, isChanged = sum.count + 1, sum.added + 1, true
    return true
  end

  -- Write what was counted, and make room for results where they are too many.
  -- Returns what is counted now; and an error where what is known of brief requests could not be
  -- written, since somebody's hand has put something else there.
  function ledger.close()
    local failure
    if #opened > 0 then
      local written = redis.pcall('HSET', openKey(load), unpack(opened))
      failure = type(written) == 'table' and written.err
      writeLoads(load, loads)
    end
    if isChanged then
      local changes = {}
      for model, sum in pairs(live) do
        changes[#changes + 1] = 's:' .. model
        changes[#changes + 1] = string.format('%.0f %.0f', sum.count, sum.counted)
      end
      redis.pcall('HSET', load, unpack(changes))
    end
    if limits.kept >= 0 and kept.bytes > limits.kept then dropKept(load, kept, limits.kept, 128) end
    local said = {}
    for field, sum in pairs(loads) do
      said[#said + 1] = field
      said[#said + 1] = sum.items
      said[#said + 1] = sum.bytes
    end
    for model, sum in pairs(live) do
      said[#said + 1] = 's:' .. model
      said[#said + 1] = sum.count
      said[#said + 1] = 0
    end
    return said, failure
  end

  return ledger
end
