-- making.lua: how scripts make a sequence that continues from a checkpoint. KEYS[2] of such a
-- script is the live zset of the sequence's bucket. The next keys are the live zsets of the buckets
-- that count together with this bucket.
-- include ../pieces/events.lua

-- How many sequences of the model live in these buckets.
local function liveTogether()
  local count = 0
  for i = 2, #KEYS do count = count + redis.call('ZCARD', KEYS[i]) end
  return count
end

-- Remove the checkpoints of a sequence that has idled out, `idle` ms after its last step, because a
-- new sequence takes its name.
local function clearLapsed(base, name, seq, idle)
  if seq then noteExpired(base, name, seq, idle) end
  local left = seq and versionKeys(base, name, seq.at, seq.kept) or {}
  if #left > 0 then redis.call('UNLINK', unpack(left)) end
end

-- Write the facts of a new sequence, and when it expires idle.
local function begin(base, name, seq)
  noteSequence(base, name, seq)
  writeSequences()
  redis.call('ZADD', KEYS[2], string.format('%.0f', seq.lapses), name)
end
