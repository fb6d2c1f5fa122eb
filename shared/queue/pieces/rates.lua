-- rates.lua: how often owners may be admitted (rates.ts), for scripts that admit. A rate has a
-- name, a period in µs, a burst, and in `of` the numbers of its requests in the call. A rate of
-- tokens has in `charges` the cost of each of them, and the parts of that (load.lua); each request
-- costs 1 of any other rate. A refused request costs nothing.
--   key `load:…:rates`  hash: by the name of a rate the Redis µs at which its owner is rested, and
--                       the period with which that was computed, in the form of a sum (load.lua).
--                       Beside the counts and not among them, because a recount reads all of them

-- Returns for each request with rates a list of these, each with its charge.
local function ratesByRequest(rates)
  local ratesOf = {}
  for n = 1, #rates do
    local rate = rates[n]
    local uncharged, of, charges = {rate = rate}, rate.of, rate.charges
    for i = 1, #of do
      local own = ratesOf[of[i]]
      if not own then
        own = {}
        ratesOf[of[i]] = own
      end
      own[#own + 1] = charges and {rate = rate, charge = charges[i]} or uncharged
    end
  end
  return ratesOf
end

-- Read the states of rates.
--   us  Redis µs now
local function readRates(load, rates, us)
  if #rates == 0 then return end
  local names = {}
  for i = 1, #rates do names[i] = rates[i].name end
  local states = readLoads(ratesKey(load), names)
  for i = 1, #rates do
    local rate = rates[i]
    local sum = states[rate.name]
    -- With another period since, the owner has still taken as many requests, and they count in the
    -- new period. Otherwise a raised limit would help only after the old wait.
    if sum.bytes > 0 and sum.bytes ~= rate.period then
      sum.items = us + math.floor((sum.items - us) * rate.period / sum.bytes)
    end
    -- No more than the burst is owed, or `most`: the clock of a server that has taken over may be
    -- behind.
    sum.items = math.max(math.min(sum.items, us + (rate.most or rate.burst) * rate.period), us)
    sum.bytes = rate.period
    rate.rested = sum
  end
end

local function writeRates(load, rates)
  local states = {}
  for i = 1, #rates do states[rates[i].name] = rates[i].rested end
  writeLoads(ratesKey(load), states)
end

-- Returns the answer to a request whose owner has sent too many before, or nil.
--   own       its rates, from `ratesByRequest`
--   inTokens  whether by its rates of tokens, or else by those of requests
local function tooSoonFor(own, us, inTokens)
  for i = 1, #own do
    local rate, charge = own[i].rate, own[i].charge
    if (charge ~= nil) == inTokens then
      local cost = charge and charge[1] or 1
      -- A rested owner may send even a request that costs more than a bucket's share of the burst.
      if charge and rate.burst > 0 then cost = math.min(cost, rate.burst) end
      local wait = rate.rested.items + cost * rate.period - us - rate.burst * rate.period
      if wait > 0 then return {'too-soon', rate.name, wait} end
    end
  end
  return nil
end

-- Returns how much is left of a rate, and the µs until it is rested.
local function standingOf(rate, us)
  local owed = rate.rested.items - us
  return math.max(0, math.floor((rate.burst * rate.period - owed) / rate.period)), owed
end

-- Count a request in its rates, and add to `answer`, first for the rates of requests and then for
-- those of tokens, the name of the rate of which the least is left, how much is left of it, and the
-- µs until its owner is rested.
--   isNew  whether the request was admitted now: only then it costs tokens
local function chargeRates(own, us, answer, isNew)
  local named, least, tokens
  for i = 1, #own do
    local rate, charge = own[i].rate, own[i].charge
    local cost = not charge and 1 or isNew and charge[1] or 0
    rate.rested.items = rate.rested.items + cost * rate.period
    local left, reset = standingOf(rate, us)
    if charge then
      if not tokens or left < tokens[2] then tokens = {rate.name, left, reset} end
    elseif not named or left < least then
      named, least = named or #answer + 1, left
      answer[named], answer[named + 1], answer[named + 2] = rate.name, left, reset
    end
  end
  for i = 1, tokens and 3 or 0 do answer[#answer + 1] = tokens[i] end
end

-- The rates of a call with a single request: `early` is the answer if its client has sent too many
-- before, and `charged` counts it and returns its answer.
local function ratesOfOne(load, rates, us)
  readRates(load, rates, us)
  local own = {}
  for i = 1, #rates do own[i] = {rate = rates[i]} end
  local one = {early = tooSoonFor(own, us, false)}
  function one.charged(said)
    local answer = {said}
    if #rates == 0 then return answer end
    chargeRates(own, us, answer, true)
    writeRates(load, rates)
    return answer
  end
  return one
end
