-- making.lua: how scripts make a sequence that goes on from a checkpoint. They have its live zset
-- as KEYS[2], and those that count together with it behind that.
-- include ../events.lua

local function liveTogether()
  local count = 0
  for i = 2, #KEYS do count = count + redis.call('ZCARD', KEYS[i]) end
  return count
end

-- Remove what is left of a sequence of the name that has idled out, `idle` ms after its last step.
local function clearLapsed(base, name, seq, idle)
  if seq then noteExpired(base, name, seq, idle) end
  local left = seq and versionKeys(base, name, seq.at, seq.kept) or {}
  if #left > 0 then redis.call('UNLINK', unpack(left)) end
end

local function begin(base, name, seq)
  noteSequence(base, name, seq)
  writeSequences()
  redis.call('ZADD', KEYS[2], string.format('%.0f', seq.lapses), name)
end
