-- limits.lua: whether there is room for the requests of an admission call, by the counts of the
-- queue (load.lua). A piece of admit.lua. The limits are JSON, with -1 for none:
--   models   most requests, bytes and live sequences of each model of the call, by its name
--   tenants  most requests and bytes of each tenant of the call, by its name
--   all      most bytes of all requests
--   kept     most bytes of the results that clients may fetch later (kept.lua)
--   keep     ms for which these results stay; a request with a longer outcome TTL has such a result
--   again    whether a request without room may come again, because other buckets may leave some
--   jobs     `models`, without sequences, and `all` for jobs, which leave a tenth to clients that
--            wait; absent if the call has no jobs
--   owners   who may have so many generations: each with a name, with `most`, and in `of` the
--            numbers of its generations in this call; absent if there are none
--   rates    of the requests' owners (rates.lua); absent if no owner has any
-- In a cluster the limits are for this bucket, and the gateway computes them from the counts of the
-- other buckets that it knows.
--   The names of limits, in the order of the checks: 'total-bytes' 'model-requests' 'model-bytes'
--   'tenant-requests' 'tenant-bytes'
-- include ../pieces/kept.lua
-- include ../pieces/rates.lua

-- For so many ms the script does not count the live sequences of a model again while there is room,
-- because the count takes a command for each bucket.
local COUNTED_MS = 1000

local function openLedger(load, json, tags, lanes, firstRequest, firstJob, now, time)
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
  for at = firstRequest, firstJob - 1, ARGV.requests.WIDTH do want('t:' .. ARGV.requests(at).name:match('^[^:]*')) end
  local rates, us = limits.rates or {}, time[1] * 1000000 + time[2]
  local ratesOf = ratesByRequest(rates)
  local ownersOf = {}
  for _, owner in ipairs(limits.owners or {}) do
    want('g:' .. owner.name)
    for _, request in ipairs(owner.of) do
      ownersOf[request] = ownersOf[request] or {}
      table.insert(ownersOf[request], owner)
    end
  end
  local loads = readLoads(load, fields)
  readRates(load, rates, us)
  local kept = loads.kept
  loads.kept = nil

  -- A model's live sequences, by its name: `items` is how many, `bytes` the Redis ms until which
  -- that number counts as exact enough.
  local live, isChanged = {}, false
  for field, sum in pairs(loads) do
    if field:sub(1, 2) == 's:' then
      live[field:sub(3)] = {count = sum.items, counted = sum.bytes, added = 0, exact = false}
      loads[field] = nil
    end
  end
  local opened, isCharged = {}, false
  local function add(sum, bytes) sum.items, sum.bytes = sum.items + 1, sum.bytes + bytes end
  local ledger = {limits = limits, hasRates = #rates > 0}

  local function past(now, most) return most >= 0 and now > most end

  -- Returns the name of the limit that a request would exceed, or nil. `job` is nil for a request
  -- without a job.
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

  -- Returns the answer to a request whose owner has sent too many before, or nil.
  --   request  its number in the call
  function ledger.tooSoon(request)
    return ratesOf[request] and tooSoonFor(ratesOf[request], us, false)
  end

  -- Returns the answer to a new generation whose owner has as many as it may have, or too few
  -- tokens, or nil.
  function ledger.tooMany(request)
    for _, own in ipairs(ownersOf[request] or {}) do
      if loads['g:' .. own.name].items >= own.most then return {'too-many', own.name} end
    end
    return ratesOf[request] and tooSoonFor(ratesOf[request], us, true)
  end

  -- Count a request in the rates of its owner.
  -- Returns its answer, with the state of the rate of which the least is left, if there is one.
  function ledger.charge(request, answer)
    local own = ratesOf[request]
    if not own then return answer end
    isCharged = true
    local isNew = answer == 'admitted'
    answer = isNew and {answer} or answer
    chargeRates(own, us, answer, isNew)
    return answer
  end

  -- Count a request for its owners. Returns its field in `open`, with the owners and charges.
  local function ownedFacts(request, facts)
    local names = {}
    for _, own in ipairs(ownersOf[request] or {}) do
      names[#names + 1] = own.name
      add(loads['g:' .. own.name], 0)
    end
    for _, own in ipairs(ratesOf[request] or {}) do
      local rate, charge = own.rate, own.charge
      if charge then
        names[#names + 1] = ('%s=%d-%d-%d-%d'):format(rate.name, charge[1], charge[2], charge[3], rate.period)
      end
    end
    if #names == 0 then return facts end
    local first = type(facts) == 'number' and HEAD.brief{bytes = facts, step = '0', sequence = ''} or facts
    return TEXT.owned{first, owners = table.concat(names, ',')}
  end

  -- Count an admitted request. `facts` is its field in `open` (load.lua).
  --   request  its number in the call
  function ledger.count(model, tenant, name, bytes, facts, request)
    if ownersOf[request] or ratesOf[request] then facts = ownedFacts(request, facts) end
    add(loads['m:' .. model], bytes)
    add(loads['t:' .. tenant], bytes)
    add(loads.all, bytes)
    opened[#opened + 1] = name
    opened[#opened + 1] = facts
  end

  -- Whether another sequence may begin; if so, counts it.
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

  -- Write the counts, and drop results if there are too many.
  -- Returns the present counts; and an error if the facts of brief requests are not written,
  -- because a person has put something else there.
  function ledger.close()
    local failure
    if #opened > 0 then
      local written = redis.pcall('HSET', openKey(load), unpack(opened))
      failure = type(written) == 'table' and written.err
    end
    if #opened > 0 then writeLoads(load, loads) end
    if isCharged then writeRates(load, rates) end
    if isChanged then
      local changes = {}
      for model, sum in pairs(live) do
        changes[#changes + 1] = 's:' .. model
        changes[#changes + 1] = TEXT.load{items = sum.count, bytes = sum.counted}
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
