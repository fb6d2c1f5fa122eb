#!lua flags=no-writes,allow-oom
-- read-used.lua: how the rates of an owner stand, and some counts of the queue.
--   KEYS.load      the counts (load.lua)
--   ARGV.rates     of the owner (rates.lua), a list in JSON
--   ARGV.fields[]  of the counts
--   Returns {rates, counts}
--             rates   for each: its name, how much is left of it, and the µs until it is rested
--             counts  for each: its field, requests and bytes
-- include ../pieces/load.lua
-- include ../pieces/rates.lua
-- include ../pieces/time.lua
local rates, us, fields = cjson.decode(ARGV.rates), time[1] * 1000000 + time[2], {}
local standings, counts = {}, {}
readRates(KEYS.load, rates, us)
for i = 1, #rates do
  local left, reset = standingOf(rates[i], us)
  local n = #standings
  standings[n + 1], standings[n + 2], standings[n + 3] = rates[i].name, left, reset
end
for i = 1, #ARGV.fields do fields[i] = ARGV.fields[i] end
for field, sum in pairs(readLoads(KEYS.load, fields)) do
  counts[#counts + 1] = field
  counts[#counts + 1] = sum.items
  counts[#counts + 1] = sum.bytes
end
return {standings, counts}
