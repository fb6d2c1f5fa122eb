#!lua flags=allow-oom
-- fold-ends.lua: count the ended jobs of models that are gone under one name, so that the counts do
-- not grow with every model that there has ever been. A repeated call finds nothing to fold.
--   KEYS.load      the counts (load.lua)
--   ARGV.ends[]
--     .field       of a model that is gone
--     .other       the field that takes its number over
-- include ../pieces/load.lua
local names = {}
for i = 1, #ARGV.ends do
  names[#names + 1], names[#names + 2] = ARGV.ends[i].field, ARGV.ends[i].other
end
local sums = readLoads(KEYS.load, names)
for i = 1, #ARGV.ends do
  local from, to = sums[ARGV.ends[i].field], sums[ARGV.ends[i].other]
  to.items, from.items = to.items + from.items, 0
end
writeLoads(KEYS.load, sums)
