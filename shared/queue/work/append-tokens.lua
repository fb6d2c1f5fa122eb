#!lua flags=allow-oom
-- append-tokens.lua: for each request of an iteration, if this worker still owns its entry: append
-- the new records to its log, and with the final record seal it. The index in the list is the
-- record's index, so what an earlier call wrote under a lost reply is seen and not written again.
-- Once a request is sealed its outcome is what its final record says, and only the commit of the
-- worker that owns the entry can give it.
--   KEYS     the ready stream of each lane of the call. Outcome hashes and logs are built here from
--            the tag of the lane's bucket, so in a cluster all lanes are of one bucket
--   ARGV[1] group   ARGV[2] consumer
--   ARGV[3] whether `wanted` is obeyed 0/1: gateways renew it, and cannot while Redis is away
--   then three per lane:  tag of the bucket and model `{tag}:model`, the oldest and the newest
--                         entry
--   then per request:  number of the lane from 1, entry, name of the request, index of the first
--                      record, FINAL if the last record is the final one, SEEN if the caller has
--                      appended with LOOK a moment ago, else LOOK; count of records, records...
--   With SEEN the length of the log alone says whether all is as the caller believes. That tells
--   all but whether the stream is wanted: whatever ends a stream takes its entry from the caller,
--   or changes its log, too (cancel.lua).
--   Returns one word per request
--           'appended'  by this call, or by an earlier one
--           'lost'      the caller does not own the entry any more, or owns it again after another
--                       worker sealed the log with other records
--           'ended'     it has an outcome (cancelled, expired), or no outcome hash any more
--           'unwanted'  nobody wants it any more, and none of these records is in the log. A final
--                       record is appended all the same
--           'gap'       the log is not as long as the caller believes: shorter than the first index
--                       (deleted from outside), or, where the final record should go, longer (an
--                       earlier call, whose reply was lost, had other records)
--           Nothing is written unless the word is 'appended'
-- include owned.lua
-- A worker seldom has more entries in a lane.
local MOST_OWNED = 1088
local LOOK, FINAL, SEEN = '0', '1', '2'
local group, consumer, heed = ARGV[1], ARGV[2], ARGV[3] == '1'
-- include ../time.lua

local lanes = {}
for i = 1, #KEYS do
  local a = 1 + 3 * i
  local lane = {ready = KEYS[i], base = ARGV[a]}
  lane.owns = ownedBy(group, consumer, lane.ready, ARGV[a + 1], ARGV[a + 2], MOST_OWNED)
  lanes[i] = lane
end

-- This runs once per token, so every command counts. Almost always the log is as long as the worker
-- believes, and the answer to the push tells; otherwise the push is undone.
local function appended(log, first, from, to)
  local before = redis.call('RPUSH', log, unpack(ARGV, from, to)) - (to - from + 1)
  if before == first then return true end
  if before == 0 then redis.call('DEL', log) else redis.call('LTRIM', log, 0, before - 1) end
  return false
end

-- The records are ARGV[from] to ARGV[to].
local function append(lane, entry, request, first, what, from, to)
  if not lane.owns(entry) then return 'lost' end
  local log = 'log:' .. lane.base .. ':' .. request
  local short = to - from < 1000
  if what == SEEN and first > 0 and short and appended(log, first, from, to) then return 'appended' end
  local final, out = what == FINAL, 'out:' .. lane.base .. ':' .. request
  local facts = redis.call('HMGET', out, 'digest', 'kind', 'sealed', 'wanted', 'began')
  if not facts[1] or facts[2] then return 'ended' end
  local sealed, began = facts[3], facts[5]
  local unwanted = heed and not final and facts[4] and tonumber(facts[4]) < now
  if what == LOOK and began and not sealed and not unwanted and short and appended(log, first, from, to) then
    return 'appended'
  end
  local length = redis.call('LLEN', log)
  local past = first + to - from + 1
  if sealed then
    -- Sealed by this very call, whose reply was lost; or by another worker meanwhile, with other
    -- records. A worker that took those for its own would go on behind the final one.
    if final and redis.call('LINDEX', log, -1) == ARGV[to] then return 'appended' end
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
local at = 3 + 3 * #KEYS
while at < #ARGV do
  local count = tonumber(ARGV[at + 6])
  said[#said + 1] = append(lanes[tonumber(ARGV[at + 1])], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4]), ARGV[at + 5],
    at + 7, at + 6 + count)
  at = at + 6 + count
end
return said
