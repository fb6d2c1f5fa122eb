#!lua flags=no-writes,allow-oom
-- read-taken.lua: read what a bucket has counted of quotas, for gateways of a Cluster.
--   KEYS.load       the counts of the bucket (load.lua)
--   ARGV.quotas[]
--     .name         of the owner
--     .field        of the record `taken` (usage.lua)
--   Returns how much each of them has counted, by Redis's date
-- include ../pieces/usage.lua
local quotas, used = {}, {}
for at = ARGV.quotas.FIRST, #ARGV, ARGV.quotas.WIDTH do
  quotas[#quotas + 1] = {name = ARGV.quotas(at).name, field = ARGV.quotas(at).field}
end
readQuotas(KEYS.load, quotas, clockUs())
for i = 1, #quotas do used[i] = quotas[i].used end
return used
