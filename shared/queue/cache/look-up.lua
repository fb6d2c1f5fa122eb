#!lua
-- look-up.lua: read the answer that the cache has for a request. A hit counts in the rates, the
-- quotas and the usage of its owner, as a request does that goes into the queue.
--   KEYS.answer   string: the answer
--   KEYS.used     zset: the answers of the place by their last use (keep.lua)
--   KEYS.load     the counts (load.lua), beside which lie the rates and the usage of owners
--   ARGV.digest   of the request
--   ARGV.owner    JSON; '' if the request has no owner with limits or usage:
--     rates       of the owner (rates.lua)
--     quotas      of the owner: each with a name, a field and `most` (usage.lua)
--     usage       absent if nobody counts: `of`, which is `{tag}:model:tenant`, and the key,
--                 `counts` (0 for a further part of a request), `bytesIn` and `keptMs`
--   Returns {'miss'}
--           {'held'}   there is an answer, but a limit of the owner is in the way, in a Cluster
--                      perhaps only of this bucket's share. The script has counted nothing, and
--                      admission decides
--           {'hit', answer, name, remaining, reset}
--                      the last three as in admit.lua, if the owner has rates
-- include ../pieces/load.lua
-- include ../pieces/rates.lua
-- include ../pieces/usage.lua
-- include ../pieces/time.lua
local answer = redis.call('GET', KEYS.answer)
if not answer then return {'miss'} end
local us = time[1] * 1000000 + time[2]
local owner = ARGV.owner == '' and {rates = {}, quotas = {}} or cjson.decode(ARGV.owner)
local one = ratesOfOne(KEYS.load, owner.rates, us)
if one.early then return {'held'} end
local usage = owner.usage
if #owner.quotas > 0 then readQuotas(KEYS.load, owner.quotas, us) end
for _, quota in ipairs(owner.quotas) do
  local isFree = usage and usage.counts == 0 and (quota.field == 'requests' or quota.field == 'dayRequests')
  if quota.used >= quota.most and not isFree then return {'held'} end
end
if usage then
  local sums = usageOf(usage.of, usage.key)
  sums.requests, sums.bytesIn = sums.requests + usage.counts, sums.bytesIn + usage.bytesIn
  sums.bytesOut = sums.bytesOut + #answer
  writeUsage(KEYS.load, usage.keptMs)
end
local said = one.charged('hit')
table.insert(said, 2, answer)
-- The order of use is worth no flush of the append-only file.
redis.set_repl(redis.REPL_NONE)
redis.call('ZADD', KEYS.used, 'XX', string.format('%d', now), string.format('%s:%d', ARGV.digest, #answer))
return said
