-- rates.lua: how often owners may be admitted (rates.ts), for scripts that admit. A rate has a
-- name, a period in µs and a burst. Its field `r:<name>` in the counts (load.lua) has the Redis µs
-- at which the owner is rested, and the period with which that was computed. A refused request
-- costs nothing.
local function rateField(rate) return 'r:' .. rate.name end

-- Take the states of rates from the loads that were read.
--   us  Redis µs now
local function takeRates(rates, loads, us)
  for i = 1, #rates do
    local rate = rates[i]
    local sum = loads[rateField(rate)]
    -- With another period since, the owner has still taken as many requests, and they count in the
    -- new period. Otherwise a raised limit would help only after the old wait.
    if sum.bytes > 0 and sum.bytes ~= rate.period then
      sum.items = us + math.floor((sum.items - us) * rate.period / sum.bytes)
    end
    sum.items, sum.bytes = math.max(sum.items, us), rate.period
    rate.rested = sum
  end
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
