-- held.lua: how many sequences there are in a bucket, of all models. Every script that makes or
-- removes a sequence counts it here, in the same call, so that no end of a process leaves a count
-- behind. A sequence that has idled out counts until reap-idle.lua has removed it.
--   key `load:{b}:sequences`  hash: `t:<tenant>` -> the sequences of the tenant, and `m:<model>` ->
--                             the sequences of the model, by which recount-sequences.lua sees
--                             whether the counts are right
-- Nothing that a person writes to the key by hand makes a script fail.

-- Returns the key of a bucket. `base` begins with the bucket's tag.
local function heldKey(base) return 'load:' .. base:match('^[^:]*') .. ':sequences' end

-- Returns how many sequences a tenant has in the bucket.
local function heldBy(base, tenant)
  local count = redis.pcall('HGET', heldKey(base), 't:' .. tenant)
  return type(count) == 'string' and tonumber(count) or 0
end

-- Count sequences of a model in a bucket that the script has made or removed.
--   changes  for each tenant, by how many it has more
local function changeHeld(base, changes)
  local key, ofModel = heldKey(base), 0
  local function change(field, more)
    if more == 0 then return end
    local count = redis.pcall('HINCRBY', key, field, string.format('%d', more))
    if type(count) == 'number' and count <= 0 then redis.call('HDEL', key, field) end
  end
  for tenant, more in pairs(changes) do
    ofModel = ofModel + more
    change('t:' .. tenant, more)
  end
  change('m:' .. base:match(':(.*)$'), ofModel)
end
