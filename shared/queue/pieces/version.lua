-- version.lua: which checkpoints a sequence has, and for how long they stay. Scripts that move a
-- sequence's pointer, or remove a checkpoint, include this file.
--   `base`  tag of the bucket and model, `{tag}:model`
--   `at`    the version from which the sequence continues; '' for none, '!' if the sequence has
--           failed
--   `kept`  the checkpoints of a model with history, including `at`, oldest first, with spaces
--           between (records/sequence.ts); '' without history
local DAY = 86400000

local function versionKey(base, name, version) return 'state:' .. base .. ':' .. name .. '@' .. version end

-- The pointer to a checkpoint on disk (sleeping-states.ts) begins so; no frame does.
local ON_DISK = 'disk:'

local function versionsOf(at, kept)
  local versions = {}
  if kept ~= '' then
    for version in kept:gmatch('=(%S+)') do versions[#versions + 1] = version end
  elseif at ~= '' and at ~= '!' then
    versions[1] = at
  end
  return versions
end

local function versionKeys(base, name, at, kept)
  local keys = versionsOf(at, kept)
  for i = 1, #keys do keys[i] = versionKey(base, name, keys[i]) end
  return keys
end

-- The TTLs of checkpoints only collect garbage. A call renews the TTL of each checkpoint that a
-- sequence may need, which is rare. `keptUntil` and `needed` are Redis ms.
-- Returns until when the checkpoints are kept now.
local function renewVersions(base, name, at, kept, keptUntil, needed)
  if keptUntil >= needed then return keptUntil end
  local keys = versionKeys(base, name, at, kept)
  if #keys == 0 then return keptUntil end
  local renewed = string.format('%d', needed + DAY)
  for i = 1, #keys do redis.call('PEXPIREAT', keys[i], renewed) end
  return needed + DAY
end
