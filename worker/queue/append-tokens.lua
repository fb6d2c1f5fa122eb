#!lua flags=allow-oom
-- append-tokens.lua: for each request of an iteration, if this worker still owns its entry: append the new records to its log, and with
-- the final one seal it. A list's index is its record's, so what an earlier call wrote under a lost reply is seen and not written again.
-- Sealed, a request's outcome is what its final record says, and only the commit of whoever owns the entry can give it.
--   KEYS[1] ready stream   then two per request:  outcome hash, log
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] whether `wanted` counts now 0/1: gateways renew it, which takes a Redis that is there
--   ARGV[4] ARGV[5] the oldest and the newest entry
--   then per request:  entry, index of the first record, whether the last record is the final one 0/1, count of records, records...
--   Returns one word per request
--           'appended'  now, or by an earlier call
--           'lost'      not ours any more; or ours again, after another worker sealed the log with other records
--           'ended'     it has an outcome (cancelled, expired), or no record any more
--           'unwanted'  nobody wants it any more, and none of these records is in the log. A final record is appended all the same
--           'gap'       the log is not as long as the caller believes: shorter than the first index (deleted from outside), or, where the
--                       final record should go, longer (an earlier call, whose reply was lost, had other records)
--           Nothing is written unless the word is 'appended'
local ready, group, consumer, heed = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- One look for all; what this worker holds beside them may lie in between.
local most = #KEYS + 64
local owned = {}
local rows = redis.call('XPENDING', ready, group, ARGV[4], ARGV[5], most, consumer)
for i = 1, #rows do owned[rows[i][1]] = true end
local function isOwned(entry)
  return owned[entry] or #rows == most and #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 1
end

-- Every call counts here, once a token. Almost always a log is as long as the worker believes, and the answer to the push tells.
local function appended(log, first, from, to)
  local before = redis.call('RPUSH', log, unpack(ARGV, from, to)) - (to - from + 1)
  if before == first then return true end
  if before == 0 then redis.call('DEL', log) else redis.call('LTRIM', log, 0, before - 1) end
  return false
end

-- The records are ARGV[from] to ARGV[to].
local function append(out, log, entry, first, final, from, to)
  if not isOwned(entry) then return 'lost' end
  local facts = redis.call('HMGET', out, 'digest', 'kind', 'sealed', 'wanted', 'began')
  if not facts[1] or facts[2] then return 'ended' end
  local sealed, began = facts[3], facts[5]
  local unwanted = heed and not final and facts[4] and tonumber(facts[4]) < now
  if began and not sealed and not final and not unwanted and to - from < 1000 and appended(log, first, from, to) then
    return 'appended'
  end
  local length = redis.call('LLEN', log)
  local past = first + to - from + 1
  if sealed then
    -- Sealed by this very call, its reply lost; or by another worker meanwhile, with whose end this one has nothing to do.
    local same = final and redis.call('LINDEX', log, -1) == ARGV[to] or not final and length >= past
    if same then return 'appended' end
    return 'lost'
  end
  if length < first or (final and length >= past) then return 'gap' end
  if unwanted and length == first then return 'unwanted' end

  for i = from + length - first, to do redis.call('RPUSH', log, ARGV[i]) end
  -- The log lives as long as the outcome hash; the commit sets the TTL of both.
  if length == 0 then
    local lapses = redis.call('PEXPIRETIME', out)
    if lapses > 0 then redis.call('PEXPIREAT', log, lapses) end
  end
  if not began and final then
    redis.call('HSET', out, 'began', string.format('%.0f', now), 'sealed', '1')
  elseif not began then
    redis.call('HSET', out, 'began', string.format('%.0f', now))
  elseif final then
    redis.call('HSET', out, 'sealed', '1')
  end
  return 'appended'
end

local said = {}
local at = 5
for k = 2, #KEYS, 2 do
  local count = tonumber(ARGV[at + 4])
  said[#said + 1] = append(KEYS[k], KEYS[k + 1], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3] == '1', at + 5, at + 4 + count)
  at = at + 4 + count
end
return said
