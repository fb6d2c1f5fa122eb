-- rates.lua: how often owners may be admitted (rates.ts), for scripts that admit. A rate has a
-- name, a period in µs and a burst. A refused request costs nothing.
--   key `load:…:rates`  hash: by the name of a rate the Redis µs at which its owner is rested, and
--                       the period with which that was computed, in the form of a sum (load.lua).
--                       Beside the counts and not among them, because a recount reads all of them
local function ratesKey(load) return load .. ':rates' end

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
    -- No more than the burst is owed: the clock of a server that has taken over may be behind.
    sum.items = math.max(math.min(sum.items, us + rate.burst * rate.period), us)
    sum.bytes = rate.period
    rate.rested = sum
  end
end

local function writeRates(load, rates)
  local states = {}
  for i = 1, #rates do states[rates[i].name] = rates[i].rested end
  writeLoads(ratesKey(load), states)
end

-- Returns the answer to a request with these rates whose owner has sent too many before, or nil.
local function tooSoonFor(rates, us)
  for i = 1, #rates do
    local rate = rates[i]
    local wait = rate.rested.items + rate.period - us - rate.burst * rate.period
    if wait > 0 then return {'too-soon', rate.name, wait} end
  end
  return nil
end

-- Count a request in these rates.
-- Returns the name of the rate of which the least is left, the requests that are left, and the µs
-- until its owner is rested.
local function chargeRates(rates, us)
  local name, least, reset
  for i = 1, #rates do
    local rate = rates[i]
    local rested = rate.rested.items + rate.period
    rate.rested.items = rested
    local left = math.floor((rate.burst * rate.period - (rested - us)) / rate.period)
    if not least or left < least then name, least, reset = rate.name, left, rested - us end
  end
  return name, least, reset
end
