#!lua flags=allow-oom
-- append-tokens.lua: for each request of an iteration, if this worker still owns its entry: append the new records to its log, and with
-- the final one seal it. A list's index is its record's, so what an earlier call wrote under a lost reply is seen and not written again.
-- Sealed, a request's outcome is what its final record says, and only the commit of whoever owns the entry can give it.
--   KEYS[1] ready stream   then two per request:  outcome hash, log
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] whether `wanted` counts now 0/1: gateways renew it, which takes a Redis that is there
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

-- The records are ARGV[from] to ARGV[to].
local function append(out, log, entry, first, final, from, to)
  if #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 0 then return 'lost' end
  local facts = redis.call('HMGET', out, 'digest', 'kind', 'sealed', 'wanted', 'began')
  if not facts[1] or facts[2] then return 'ended' end
  local length = redis.call('LLEN', log)
  local past = first + to - from + 1
  if facts[3] then
    -- Sealed by this very call, its reply lost; or by another worker meanwhile, with whose end this one has nothing to do.
    local same = final and redis.call('LINDEX', log, -1) == ARGV[to] or not final and length >= past
    if same then return 'appended' end
    return 'lost'
  end
  if length < first or (final and length >= past) then return 'gap' end
  if heed and not final and length == first and facts[4] and tonumber(facts[4]) < now then return 'unwanted' end

  for i = from + length - first, to do redis.call('RPUSH', log, ARGV[i]) end
  -- The log lives as long as the outcome hash; the commit sets the TTL of both.
  if length == 0 then
    local lapses = redis.call('PEXPIRETIME', out)
    if lapses > 0 then redis.call('PEXPIREAT', log, lapses) end
  end
  if not facts[5] and final then
    redis.call('HSET', out, 'began', string.format('%.0f', now), 'sealed', '1')
  elseif not facts[5] then
    redis.call('HSET', out, 'began', string.format('%.0f', now))
  elseif final then
    redis.call('HSET', out, 'sealed', '1')
  end
  return 'appended'
end

local said = {}
local at = 3
for k = 2, #KEYS, 2 do
  local count = tonumber(ARGV[at + 4])
  said[#said + 1] = append(KEYS[k], KEYS[k + 1], ARGV[at + 1], tonumber(ARGV[at + 2]), ARGV[at + 3] == '1', at + 5, at + 4 + count)
  at = at + 4 + count
end
return said
