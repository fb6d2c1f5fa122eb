#!lua flags=allow-oom
-- commit-usual.lua: the short way of commit-steps.lua, for steps that end as almost all steps do:
-- the request is brief and has a result, the sequence continues from the step's checkpoint, the
-- model keeps one checkpoint, and no other step of the sequence waits. The worker knows from the
-- step's entry what Redis must hold of the sequence. The script puts this text and the next text
-- together from their parts, compares and writes. It changes nothing of a step of which anything
-- differs: then commit-steps.lua finds the step's outcome and checkpoint where the transaction has
-- written them. Both ways leave the same keys.
--   KEYS.load         the counts (load.lua)
--   KEYS.ready[]      as in commit-steps.lua
--   ARGV.group
--   ARGV.consumer
--   ARGV.idle         ms for which a sequence lives between its steps, less than the TTL of its
--                     checkpoints by at least a day
--   ARGV.kept         TTL ms of the new checkpoints
--   ARGV.apart        place of the outcomes that did not pass through the script (settlement.lua)
--   ARGV.lanes[]      for each ready stream:
--     .base           tag of the bucket and model, `{tag}:model`
--     .pin            `version:digest`
--     .oldest         the oldest entry
--     .newest         the newest entry
--     .steps          how many of the steps are of this lane
--   ARGV.steps[]      lane by lane
--     .entry
--     .request        name of the request
--     .sequence       name of the sequence
--     .step           number of the step
--     .done           number of the step before
--     .start          number of the START of its sequence
--     .from           version from which the step continued, or ''
--     .version        version of the step's checkpoint
--     .ttl            outcome TTL ms
--     .body           of the outcome; '' if it is apart
--     .spent          what the run took (usage.lua), or ''
--   Returns the numbers of the steps that are left to commit-steps.lua, from 1
local load = KEYS.load
-- include ../../pieces/parking.lua
-- include ../../pieces/version.lua
-- include ../../pieces/live.lua
-- include ../read/owned.lua
local clock = now
local now, lapses = string.format('%d', clock), clock + tonumber(ARGV.idle)
-- The rest of a sequence's facts, the same for all steps.
local rest = TEXT.sequence{'', lapses = lapses, keptUntil = clock + ARGV.kept, kept = ''}
-- The last byte of facts that name no kept checkpoints, as a model with history has them.
local NONE_KEPT = rest:byte(-1)

local left, gone, checkpoints, open = {}, {}, {}, {}

-- Write the outcome of a brief request.
--   `facts`  of the request in `open`
-- Returns whether it had none.
local function give(name, facts, ttl, body)
  local at, pin, gateway, ended = facts:match(PATTERN.brief(at, pin, gateway, ended))
  if ended ~= '0' then return false end
  local out = 'out:' .. name
  if body == '' then
    local apart = out .. '@' .. ARGV.apart
    redis.call('SETRANGE', apart, 0, HEAD.outcome{ended = now, at = at})
    redis.call('RENAME', apart, out)
  else
    local outcome = TEXT.outcome{ended = now, at = at, kind = 'result', pin = pin, gateway = gateway, body = body}
    redis.call('SET', out, outcome, 'PX', ttl)
  end
  open[name] = facts
  gone[#gone + 1] = name
  return true
end

-- Commit steps of a lane.
--   `first`  place of the first step in ARGV   `before`  the number of steps before this step
local function commit(lane, ready, base, first, count, before)
  local pin = ARGV.lanes[lane].pin
  local runs = 'runs:' .. base .. ':' .. pin
  local unusual = redis.call('EXISTS', runs, laneKeyOf('queue', ready)) > 0
  local owns = ownedBy(ARGV.group, ARGV.consumer, ready, ARGV.lanes[lane].oldest, ARGV.lanes[lane].newest, 2 * count + 64)
  local sequences, requests = {}, {}
  for i = 1, count do
    local at = first + (i - 1) * ARGV.steps.WIDTH
    sequences[i], requests[i] = ARGV.steps(at).sequence, base .. ':' .. ARGV.steps(at).request
  end
  local all, briefs = 'seqs:' .. base, readOpen(load, requests)
  local texts = redis.pcall('HMGET', all, unpack(sequences))
  local changed, entries, idle, earlier, n = {}, {}, {}, {}, 0
  for i = 1, count do
    local at = first + (i - 1) * ARGV.steps.WIDTH
    local text, brief, entry, from = texts[i], briefs[requests[i]], ARGV.steps(at).entry, ARGV.steps(at).from
    local step, start = ARGV.steps(at).step, ARGV.steps(at).start
    -- No other request has the entry that the facts name.
    local facts = HEAD.sequence{next = step, done = ARGV.steps(at).done, start = start, ended = '0', at = from, pin = pin,
      entry = entry, on = pin, request = ARGV.steps(at).request}
    if text and brief and owns(entry) and text:find(facts, 1, true) == 1 and text:byte(-1) == NONE_KEPT
      and give(requests[i], brief, ARGV.steps(at).ttl, ARGV.steps(at).body) then
      noteSpent(requests[i], ARGV.steps(at).spent, 1)
      n = n + 1
      entries[n] = entry
      changed[2 * n - 1] = sequences[i]
      changed[2 * n] = HEAD.sequence{next = step, done = step, start = start, ended = '0', at = ARGV.steps(at).version,
        pin = pin, entry = '', on = '', request = ''} .. rest
      idle[n], earlier[n] = sequences[i], tonumber((text:match(PATTERN.sequence(lapses)))) or 0
      if from ~= '' then checkpoints[#checkpoints + 1] = versionKey(base, sequences[i], from) end
    else
      left[#left + 1] = before + i
    end
  end
  if n == 0 then return end
  redis.call('HSET', all, unpack(changed))
  fileIdle(base, idle, earlier, lapses)
  redis.call('XACK', ready, ARGV.group, unpack(entries))
  redis.call('XDEL', ready, unpack(entries))
  if unusual then
    redis.call('HDEL', runs, unpack(entries))
    refillIfParking(ready, n)
  end
end

local first, before = ARGV.lanes.FIRST + ARGV.lanes.WIDTH * #KEYS.ready, 0
for i = 1, #KEYS.ready do
  local count = tonumber(ARGV.lanes[i].steps)
  commit(i, KEYS.ready[i], ARGV.lanes[i].base, first + before * ARGV.steps.WIDTH, count, before)
  before = before + count
end
letGo(load, gone, false, open)
if #checkpoints > 0 then redis.call('UNLINK', unpack(checkpoints)) end
return left
