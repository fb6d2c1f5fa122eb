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
--   quotas   of the requests' owners: each with the `name` of the owner, the `field` of the record
--            `taken` (usage.lua), and `most`; absent if none. `owed` has, for each list of quotas
--            that requests have together, in `quotas` their numbers, and in `of` the requests'
--   sequences  most live sequences of tenants, by name, of all models; absent if none has a limit
--   usage    whose usage counts (usage.lua): in `keptMs` for how long, and in `users` each with a
--            `key`, `counts` (0 for further parts of a request), and in `of` the numbers of its
--            requests. `generations` has for some of them the number, the tokens that the prompt is
--            taken for, and the choices. Absent if nobody counts
-- In a cluster the limits are for this bucket, and the gateway computes them from the counts of the
-- other buckets that it knows.
--   The names of limits, in the order of the checks: 'total-bytes' 'model-requests' 'model-bytes'
--   'tenant-requests' 'tenant-bytes'
-- include ../pieces/kept.lua
-- include ../pieces/rates.lua

-- For so many ms the script does not count the live sequences of a model again while there is room,
-- because the count takes a command for each bucket.
local COUNTED_MS = 1000

-- The answers that count as refused by a limit. Those after which a request may come again to a
-- bucket of a Cluster do not count there.
local REFUSED = {['too-soon'] = true, ['over-quota'] = true, ['backlog-full'] = true}
local REFUSED_UNLESS_AGAIN = {['too-many'] = true, ['queue-full'] = true, ['too-many-sequences'] = true,
  ['too-many-of-tenant'] = true}

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
  if limits.jobs then want('g:j') end
  for _, owner in ipairs(limits.owners or {}) do
    want('g:' .. owner.name)
    for _, request in ipairs(owner.of) do
      ownersOf[request] = ownersOf[request] or {}
      table.insert(ownersOf[request], owner)
    end
  end
  local owedBy, userOf, generationOf = {}, {}, {}
  for _, user in ipairs(limits.usage and limits.usage.users or {}) do
    for _, request in ipairs(user.of) do userOf[request] = user end
  end
  for _, generation in ipairs(limits.usage and limits.usage.generations or {}) do
    generationOf[generation[1]] = ('%d-%d'):format(generation[2], generation[3])
  end
  if limits.quotas then readQuotas(load, limits.quotas, us) end
  for _, owed in ipairs(limits.owed or {}) do
    owed.ofRequests = {}
    for _, number in ipairs(owed.quotas) do
      local quota = limits.quotas[number]
      -- Tokens and time are used when requests end, and not by this call.
      if quota.field == 'requests' or quota.field == 'dayRequests' then
        table.insert(owed.ofRequests, quota)
      elseif quota.used >= quota.most then
        owed.over = owed.over or {'over-quota', quota.name, quota.field}
      end
    end
    for _, request in ipairs(owed.of) do owedBy[request] = owed end
  end
  local loads = readLoads(load, fields)
  readRates(load, rates, us)
  local kept = loads.kept
  loads.kept = nil

  -- A model's live sequences, by its name: `items` is how many, `bytes` the Redis ms until which
  -- that number counts as exact enough.
  local live, isChanged = {}, false
  -- The sequences of tenants that have a limit of them, by tenant.
  local held = {}
  for field, sum in pairs(loads) do
    if field:sub(1, 2) == 's:' then
      live[field:sub(3)] = {count = sum.items, counted = sum.bytes, added = 0, exact = false}
      loads[field] = nil
    end
  end
  local opened, isCharged = {}, false
  local function add(sum, bytes) sum.items, sum.bytes = sum.items + 1, sum.bytes + bytes end
  local ledger = {limits = limits, hasRates = #rates > 0, hasUsage = limits.usage ~= nil}

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

  -- Returns the answer to a new request whose owner has used up a quota, or nil. A further part of
  -- a request counts as none.
  function ledger.overQuota(request)
    local owed = owedBy[request]
    if not owed then return nil end
    for _, quota in ipairs(userOf[request] and userOf[request].counts == 0 and {} or owed.ofRequests) do
      if quota.used >= quota.most then return {'over-quota', quota.name, quota.field} end
    end
    return owed.over
  end

  -- Returns the answer to a new request whose owner has used up a quota, or to a new generation
  -- whose owner has as many as it may have, or too few tokens; or nil.
  function ledger.tooMany(request)
    local overQuota = ledger.overQuota(request)
    if overQuota then return overQuota end
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

  -- Count a request for its owners. Returns its field in `open`, with the owners and charges. The
  -- requests of all jobs count as those of one owner, so every script that lets one go counts it.
  local function ownedFacts(request, facts, job)
    local names = {}
    if job then
      names[1] = 'j'
      add(loads['g:j'], 0)
    end
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
    if userOf[request] and generationOf[request] then
      names[#names + 1] = ('u:%s=%s'):format(userOf[request].key, generationOf[request])
    end
    if #names == 0 then return facts end
    local first = type(facts) == 'number' and HEAD.brief{bytes = facts, step = '0', sequence = ''} or facts
    return TEXT.owned{first, owners = table.concat(names, ',')}
  end

  -- Count an admitted request. `facts` is its field in `open` (load.lua).
  --   request  its number in the call   job  that it runs, or nil
  function ledger.count(model, tenant, name, bytes, facts, request, job)
    if job or ownersOf[request] or ratesOf[request] or generationOf[request] then
      facts = ownedFacts(request, facts, job)
    end
    local user = userOf[request]
    if user then
      local sums = usageOf(name, user.key)
      sums.requests, sums.bytesIn = sums.requests + user.counts, sums.bytesIn + bytes
      for _, quota in ipairs(owedBy[request] and owedBy[request].ofRequests or {}) do
        quota.used = quota.used + user.counts
      end
    end
    add(loads['m:' .. model], bytes)
    add(loads['t:' .. tenant], bytes)
    add(loads.all, bytes)
    opened[#opened + 1] = name
    opened[#opened + 1] = facts
  end

  -- Count an answer other than 'admitted' in the usage of the key that sent the request.
  --   name  of the request, as in `open`
  function ledger.tally(request, name, word)
    local user = userOf[request]
    if not user or user.counts == 0 then return end
    if word == 'known' then
      local sums = usageOf(name, user.key)
      sums.requests = sums.requests + 1
    elseif REFUSED[word] or REFUSED_UNLESS_AGAIN[word] and not limits.again then
      local sums = usageOf(name, user.key)
      sums.refused = sums.refused + 1
    end
  end

  -- Returns how many sequences a tenant has, of all models: in the buckets that count together, and
  -- the sequences that this call begins.
  local function heldTogether(tenant)
    if not held[tenant] then
      held[tenant] = 0
      for tag in tags:gmatch('%S+') do held[tenant] = held[tenant] + heldBy(tag, tenant) end
    end
    return held[tenant]
  end

  -- Returns the answer to a request for which no other sequence may begin; or nil, and counts the
  -- new sequence.
  function ledger.begins(base, tenant)
    local mostOfTenant = limits.sequences and limits.sequences[tenant]
    if mostOfTenant and heldTogether(tenant) >= mostOfTenant then return 'too-many-of-tenant' end
    local model = base:match(':(.*)$')
    local sum, most = live[model], limits.models[model][3]
    if not sum.exact and (sum.counted <= now or sum.count >= most) then
      sum.count, sum.exact, sum.counted = sum.added, true, now + COUNTED_MS
      for tag in tags:gmatch('%S+') do sum.count = sum.count + redis.call('ZCARD', 'live:' .. tag .. ':' .. model) end
    end
    if sum.count >= most then return 'too-many-sequences' end
    sum.count, sum.added, isChanged = sum.count + 1, sum.added + 1, true
    if mostOfTenant then held[tenant] = held[tenant] + 1 end
    return nil
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
    writeUsage(load, limits.usage and limits.usage.keptMs)
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
    for tenant, count in pairs(held) do
      said[#said + 1] = 'h:' .. tenant
      said[#said + 1] = count
      said[#said + 1] = 0
    end
    return said, failure
  end

  return ledger
end
