-- making.lua: how scripts make a sequence that continues from a checkpoint. `KEYS.live` of such a
-- script is the live zset of the sequence's bucket. `KEYS.others` are the live zsets of the buckets
-- that count together with this bucket.
-- include ../pieces/events.lua

-- How many sequences of the model live in these buckets.
local function liveTogether()
  local count = redis.call('ZCARD', KEYS.live)
  for i = 1, #KEYS.others do count = count + redis.call('ZCARD', KEYS.others[i]) end
  return count
end

-- Returns why the tenant may have no other sequence, as the script's answer, or nil.
local function refusesAnother(base, tenant)
  if ARGV.mostOfTenant ~= '' then
    local count = heldBy(base, tenant)
    for i = 1, #KEYS.others do count = count + heldBy(KEYS.others[i]:sub(#'live:' + 1), tenant) end
    if count >= tonumber(ARGV.mostOfTenant) then return 'too-many-of-tenant' end
  end
  return liveTogether() >= tonumber(ARGV.most) and 'too-many-sequences' or nil
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
  redis.call('ZADD', KEYS.live, string.format('%d', seq.lapses), name)
end
