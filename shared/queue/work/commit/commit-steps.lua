#!lua flags=allow-oom
-- commit-steps.lua: for each step of a batch, if this worker still owns its entry: point the
-- sequence to the step's checkpoint, write the outcome, acknowledge the entry, and move the
-- sequence's next waiting step to ready. If the worker no longer owns the entry, the script refuses
-- the step: it writes no outcome, and removes the step's new checkpoint, unless the sequence
-- already continues from that checkpoint. Usually another worker has taken the entry over. The
-- transaction has written the checkpoints before the script, each under a name of its own.
--   KEYS.load         the counts (load.lua)
--   KEYS.ready[]      the stream of each lane of the call, all of the same model. The script builds
--                     the other keys from the tag of the lane's bucket, so in a cluster all lanes
--                     are of the same bucket
--   ARGV.group
--   ARGV.consumer
--   ARGV.idle         ms for which a sequence lives between its steps
--   ARGV.limits       limits of requests set aside (set-aside.lua)
--   ARGV.streams      whether requests are streams, with a log each, 0/1
--   ARGV.history      most checkpoints to keep of a sequence, including the newest
--   ARGV.kept         TTL ms of the new checkpoints
--   ARGV.lanes[]      for each ready stream:
--     .base           tag of the bucket and model, `{tag}:model`
--     .pin            `version:digest`
--     .oldest         the oldest entry
--     .newest         the newest entry
--   ARGV.steps[]
--     .lane           number of the lane, from 1
--     .entry
--     .request        name of the request
--     .sequence       name of the sequence
--     .number         number of the step
--     .start          START 0/1
--     .kind           of the outcome
--     .body           of the outcome
--     .ttl            outcome TTL ms
--     .apart          place of the outcome (settlement.lua)
--     .action
--     .version        version of the checkpoint, for the action `put`
--     .reason         reason to set the request aside, or ''
--     .spent          what the run took (usage.lua), or ''
--   action  put   the sequence continues from the step's checkpoint
--           keep  the step has no effect; the sequence continues from its earlier checkpoint
--           drop  the sequence continues from its initial state
--           fail  the sequence is over: its state is gone, and Baton refuses its steps until a
--                 START
--   Returns a word for each step
--           'committed'   done
--           'superseded'  the request already had another outcome (expired, cancelled): the script
--                         acknowledges the entry, and the step has no effect. A request without a
--                         record had an outcome too, because nothing else deletes the record before
--                         the commit. The action then is 'keep'; for a START it is 'fail', or
--                         'drop' if requests are streams
--           'already'     refused: the caller no longer owns the entry, and the request has an
--                         outcome, perhaps from an earlier copy of this call
--           'lost'        refused: the caller no longer owns the entry, and the request has no
--                         outcome
--           Also 'already' or 'lost' if the caller owns the entry, but the sequence does not know
--           the entry (deleted from outside). Then the script acknowledges the entry, because no
--           commit can ever succeed
local load = KEYS.load
-- include ../../pieces/version.lua
-- include ../../pieces/sequence.lua
-- include ../../pieces/live.lua
-- include ../read/owned.lua
-- include settlement.lua
-- include ../../pieces/set-aside.lua
-- include ../../pieces/past.lua
local group, consumer = ARGV.group, ARGV.consumer
local streams = ARGV.streams == '1'
local history, written = tonumber(ARGV.history), tonumber(ARGV.kept)
local first = ARGV.lanes.FIRST + ARGV.lanes.WIDTH * #KEYS.ready
local count = (#ARGV - first + 1) / ARGV.steps.WIDTH
-- include ../../pieces/time.lua
local clock = now
local lapses = clock + tonumber(ARGV.idle)
local now = string.format('%d', clock)

local lanes = {}
for i = 1, #KEYS.ready do
  local lane = {ready = KEYS.ready[i], base = ARGV.lanes[i].base, forgotten = {}, idle = {}, before = {}}
  lane.pin = ARGV.lanes[i].pin
  lane.runs = 'runs:' .. lane.base .. ':' .. lane.pin
  -- Almost always there is no suspect and no parked request, and a single command shows that.
  lane.unusual = redis.call('EXISTS', lane.runs, laneKeyOf('queue', lane.ready)) > 0
  lane.parking = lane.unusual and isParking(lane.ready) and lane.ready
  lane.owns = ownedBy(group, consumer, lane.ready, ARGV.lanes[i].oldest, ARGV.lanes[i].newest, 2 * count + 64)
  lanes[i] = lane
end

local names, requests = {}, {}
for at = first, #ARGV, ARGV.steps.WIDTH do
  local base = lanes[tonumber(ARGV.steps(at).lane)].base
  addTo(names, base, ARGV.steps(at).sequence)
  requests[#requests + 1] = base .. ':' .. ARGV.steps(at).request
end
for base, some in pairs(names) do lookUpSequences(base, some) end
local ending = openEndings(load, requests, now, streams)

-- Checkpoints that nothing refers to any more. The script removes all of them at its end.
local removed = {}
local function remove(lane, name, versions)
  for i = 1, #versions do removed[#removed + 1] = versionKey(lane.base, name, versions[i]) end
end

-- Make room for a step's new version.
-- Returns the versions to keep, as a list ('' without history), and the versions to remove. A START
-- keeps no version from before.
local function supersede(at, kept, start, step, version)
  local gone = versionsOf(at, kept)
  if history == 1 then return '', gone end
  local fresh = TEXT.checkpoint{step = step, version = version}
  if start == '1' or kept == '' then return fresh, gone end
  local items = {}
  for item in kept:gmatch('%S+') do items[#items + 1] = item end
  local out = {}
  for i = 1, #items + 1 - history do
    out[i] = gone[i]
    items[i] = false
  end
  local stay = {}
  for i = 1, #items do
    if items[i] then stay[#stay + 1] = items[i] end
  end
  stay[#stay + 1] = fresh
  return table.concat(stay, ' '), out
end

local function commit(lane, entry, request, name, step, start, kind, body, ttl, apart, action, version, reason,
  spent)
  step = tonumber(step)
  local counted = lane.base .. ':' .. request
  local isOpen, hasEnded, brief, keep = ending.look(counted)
  local seq = sequenceOf(lane.base, name)
  local at, kept, keptUntil = '', '', 0
  if seq then at, kept, keptUntil = seq.at, seq.kept, seq.keptUntil end
  local mine = lane.owns(entry)
  -- Entries of two lanes may have the same id, so the sequence also names the lane of its entry.
  local isIts = seq and seq.entry == entry and seq.on == lane.pin and seq.done + 1 == step
  if not mine or not isIts then
    if mine then
      lane.forgotten[#lane.forgotten + 1] = entry
      ending.leave(counted, lane.parking)
    end
    ending.drop(counted, apart)
    -- A repeated call has written a version again from which the sequence may continue. Keep that
    -- version.
    if action == 'put' and not (at .. ' ' .. kept):find(version, 1, true) then remove(lane, name, {version}) end
    if hasEnded then return 'already' end
    return 'lost'
  end
  if isOpen or streams then noteSpent(counted, spent, isOpen and kind == 'result' and 1 or 0) end
  local said = 'committed'
  if not isOpen then
    said = 'superseded'
    ending.drop(counted, apart)
    if action == 'put' then remove(lane, name, {version}) end
    -- A cancelled step has no effect. After a cancelled START a conversation continues from its
    -- initial state, and a sequence of another model fails, because it has no state without its
    -- START.
    action = start ~= '1' and 'keep' or streams and 'drop' or 'fail'
  else
    ending.give(counted, brief, keep, mine, kind, body, ttl, apart)
    if reason ~= '' then
      setAside('dead:' .. lane.base, ARGV.limits, now, 'request', requestIn(counted), 'job', jobIn(counted), 'sequence', name,
        'step', string.format('%d', step), 'reason', reason,
        'runs', (redis.call('HGET', lane.runs, entry) or '0'):match(PATTERN.runs(count)), 'frame', frameOf(lane.ready, entry))
    end
  end
  local from, gone = at, {}
  if action == 'put' then
    from = version
    kept, gone = supersede(at, kept, start, step, version)
    keptUntil = kept:find(' ', 1, true) and math.min(keptUntil, clock + written) or clock + written
  elseif action == 'drop' or action == 'fail' then
    gone = versionsOf(at, kept)
    from, kept = action == 'drop' and '' or '!', ''
    -- A later START in the queue begins the sequence anew. Without a later START the id is free at
    -- once.
    if action == 'fail' and seq.start <= step then seq.ended = FAILED end
  end
  lane.forgotten[#lane.forgotten + 1] = entry
  ending.leave(counted, lane.parking)
  remove(lane, name, gone)

  -- Every later step waits behind this step, so the numbers show whether a step waits.
  local waiting = seq.next > step and redis.call('LPOP', 'wait:' .. lane.base .. ':' .. name)
  if not waiting and seq.ended ~= '0' then
    noteSequence(lane.base, name, nil)
    notePast(lane.base, name, seq.ended)
    remove(lane, name, versionsOf(from, kept))
    redis.call('ZREM', 'live:' .. lane.base, name)
    return said
  end
  seq.done, seq.at, seq.kept = step, from, kept
  if waiting then
    -- The waiting step may be for another version: a START begins under the latest version.
    local next = cmsgpack.unpack(waiting)
    local deadline = LIST.waiting(next).facts:match(PATTERN.entry(deadline))
    seq.keptUntil = renewVersions(lane.base, name, from, kept, keptUntil, tonumber(deadline) + DAY)
    seq.request, seq.on = LIST.waiting(next).facts:match(PATTERN.entry(request)), LIST.waiting(next).pin
    if lane.parking and LIST.waiting(next).pin == lane.pin then
      -- Parks the next step behind other requests, so that a long sequence gets only its share.
      park(lane.ready, TEXT.entry{LIST.waiting(next).facts, from = from}, LIST.waiting(next).frame,
        LIST.waiting(next).terms, 'next')
      seq.entry = PARKED
    else
      seq.entry = redis.call('XADD', 'ready:' .. lane.base .. ':' .. seq.on, '*',
        'm', TEXT.entry{LIST.waiting(next).facts, from = from}, 'b', LIST.waiting(next).frame)
    end
  else
    seq.keptUntil = renewVersions(lane.base, name, from, kept, keptUntil, lapses + DAY)
    lane.idle[#lane.idle + 1], lane.before[#lane.before + 1] = name, seq.lapses
    -- Clears the fields that the next step brings again, because an idle sequence takes memory for
    -- long.
    seq.entry, seq.request, seq.on, seq.lapses = '', '', '', lapses
  end
  noteSequence(lane.base, name, seq)
  return said
end

-- A step fails only if a person has changed the keys of its sequence by hand. The script commits
-- the other steps all the same: the caller repeats the call, and reads their fates.
local said, failure = {}, nil
for at = first, #ARGV, ARGV.steps.WIDTH do
  local i = (at - first) / ARGV.steps.WIDTH + 1
  local whole, word = pcall(commit, lanes[tonumber(ARGV.steps(at).lane)], ARGV.steps(at).entry, ARGV.steps(at).request,
    ARGV.steps(at).sequence, ARGV.steps(at).number, ARGV.steps(at).start, ARGV.steps(at).kind, ARGV.steps(at).body,
    ARGV.steps(at).ttl, ARGV.steps(at).apart, ARGV.steps(at).action, ARGV.steps(at).version, ARGV.steps(at).reason,
    ARGV.steps(at).spent)
  if whole then said[i] = word else failure = failure or word end
end
writeSequences()
writePast(clock)
ending.close()
for i = 1, #lanes do
  local lane = lanes[i]
  if #lane.forgotten > 0 then
    redis.call('XACK', lane.ready, group, unpack(lane.forgotten))
    redis.call('XDEL', lane.ready, unpack(lane.forgotten))
    if lane.unusual then redis.call('HDEL', lane.runs, unpack(lane.forgotten)) end
    if lane.parking then refill(lane.ready, #lane.forgotten) end
  end
  fileIdle(lane.base, lane.idle, lane.before, lapses)
end
for i = 1, #removed, 1000 do redis.call('UNLINK', unpack(removed, i, math.min(i + 999, #removed))) end
if failure then error(failure) end
return said
