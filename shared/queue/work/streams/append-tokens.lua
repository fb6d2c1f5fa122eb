#!lua flags=allow-oom
-- append-tokens.lua: append new records to the logs of an iteration's requests. A log changes only
-- if this worker still owns the request's entry. The final record seals the log. Each record has a
-- fixed index in its log, so the script finds the records of an earlier call whose reply was lost,
-- and does not write them again. After the seal the final record decides the outcome, and only the
-- worker that owns the entry can commit that outcome.
--   KEYS.ready[]    the stream of each lane of the call. The script builds the keys of outcome
--                   hashes and logs from the tag of the lane's bucket, so in a cluster all lanes
--                   are of the same bucket
--   ARGV.group
--   ARGV.consumer
--   ARGV.heed       whether to obey `wanted` 0/1: gateways renew the field, and cannot while Redis
--                   is away
--   ARGV.lanes[]    for each ready stream:
--     .base         tag of the bucket and model, `{tag}:model`
--     .oldest       the oldest entry
--     .newest       the newest entry
--   ARGV.requests[]
--     .lane         number of the lane, from 1
--     .entry
--     .name         name of the request
--     .first        index of the first record
--     .what         FINAL if the last record is the final record, SEEN if the caller has appended
--                   with LOOK a moment ago, else LOOK. The timings of the request may stand behind
--                   FINAL
--     .records...
--   With SEEN the script compares only the owner of the entry and the length of the log. These
--   cannot show that no client wants the stream any more. Any other end of a stream takes the entry
--   from the caller or changes the log (cancel.lua), so the script sees it.
--   Returns a word for each request
--           'appended'  by this call, or by an earlier call
--           'lost'      the caller no longer owns the entry, or owns it again after another worker
--                       sealed the log with other records
--           'ended'     the request has an outcome (cancelled, expired), or its outcome hash is
--                       gone
--           'unwanted'  no client wants the stream any more, and no earlier call has appended any
--                       of these records. The script never gives this answer to a call whose last
--                       record is the final record
--           'gap'       the log is not as long as the caller believes: shorter than the first index
--                       (deleted from outside), or too long for the final record (an earlier call,
--                       whose reply was lost, had other records)
--           The script leaves a change only if the word is 'appended'
-- include ../read/owned.lua
-- The most entries that a worker usually has in a lane.
local MOST_OWNED = 1088
local LOOK, FINAL, SEEN = '0', '1', '2'
local group, consumer, heed = ARGV.group, ARGV.consumer, ARGV.heed == '1'
-- include ../../pieces/time.lua

local lanes = {}
for i = 1, #KEYS.ready do
  local lane = {ready = KEYS.ready[i], base = ARGV.lanes[i].base}
  lane.owns = ownedBy(group, consumer, lane.ready, ARGV.lanes[i].oldest, ARGV.lanes[i].newest, MOST_OWNED)
  lanes[i] = lane
end

-- This runs once per token, so every command counts. The log is almost always as long as the worker
-- believes, and the reply to RPUSH shows the length. If the length is wrong, undo the push.
local function appended(log, first, from, to)
  local before = redis.call('RPUSH', log, unpack(ARGV, from, to)) - (to - from + 1)
  if before == first then return true end
  if before == 0 then redis.call('DEL', log) else redis.call('LTRIM', log, 0, before - 1) end
  return false
end

-- The records are the arguments `from` to `to`.
local function append(lane, entry, request, first, what, from, to)
  if not lane.owns(entry) then return 'lost' end
  local log = 'log:' .. lane.base .. ':' .. request
  local short = to - from < 1000
  if what == SEEN and first > 0 and short and appended(log, first, from, to) then return 'appended' end
  local final, out = what:sub(1, 1) == FINAL, 'out:' .. lane.base .. ':' .. request
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
    -- This very call has sealed the log, and its reply was lost; or another worker has, with other
    -- records. A worker that took those records for its own would append behind the final record.
    if final and redis.call('LINDEX', log, -1) == ARGV.records(to) then return 'appended' end
    return 'lost'
  end
  if length < first or (final and length >= past) then return 'gap' end
  if unwanted and length == first then return 'unwanted' end

  for i = from + length - first, to do redis.call('RPUSH', log, ARGV.records(i)) end
  -- The log lives as long as the outcome hash. The commit sets the TTL of both.
  if length == 0 then
    local lapses = redis.call('PEXPIRETIME', out)
    if lapses > 0 then redis.call('PEXPIREAT', log, lapses) end
  end
  if not began and final then
    redis.call('HSET', out, 'began', string.format('%d', now), 'sealed', '1')
  elseif not began then
    redis.call('HSET', out, 'began', string.format('%d', now))
  elseif final then
    redis.call('HSET', out, 'sealed', '1')
  end
  if final and #what > 1 then redis.call('HSET', out, 't', what:sub(2)) end
  return 'appended'
end

local said = {}
local at = ARGV.lanes.FIRST + ARGV.lanes.WIDTH * #KEYS.ready
while at <= #ARGV do
  local from, count = at + ARGV.requests.WIDTH, tonumber(ARGV.requests(at).records)
  said[#said + 1] = append(lanes[tonumber(ARGV.requests(at).lane)], ARGV.requests(at).entry, ARGV.requests(at).name,
    tonumber(ARGV.requests(at).first), ARGV.requests(at).what, from, from + count - 1)
  at = from + count
end
return said
