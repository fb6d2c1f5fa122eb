#!lua flags=allow-oom
-- commit-steps.lua: for each step of a batch, if this worker still owns its entry: make the
-- sequence go on from the step's checkpoint, write the outcome, acknowledge, and move the
-- sequence's next waiting step to ready. Otherwise change nothing: the worker was a zombie, since
-- another one has taken the entry over. The checkpoints were written ahead of the script in its
-- transaction, each under a name of its own; the one of a step that changes nothing is removed
-- again.
--   KEYS     the ready stream of each lane of the call, all of one model. The other keys are built
--            here from the tag of the lane's bucket, so in a cluster all lanes are of one bucket.
--            Then what is counted (load.lua)
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] idle ms   ARGV[4] limits of what is set aside
--   (set-aside.lua)
--   ARGV[5] whether requests are streams, with a log each, 0/1
--   ARGV[6] how many checkpoints of a sequence are kept, the one that it goes on from included
--   ARGV[7] TTL ms that the new checkpoints were written with
--   then four per lane:  tag of the bucket and model `{tag}:model`, pin `version:digest`,
--                        the oldest and the newest entry
--   then thirteen per step:  number of the lane from 1, entry, name of the request, sequence name,
--                            step number, START 0/1, outcome kind, outcome body, outcome TTL ms,
--                            where the outcome is (`apart` in settlement.lua), action, version of
--                            the checkpoint (for action put), reason to set aside ('' if it is not
--                            set aside)
--   action  put   the sequence goes on from the step's checkpoint
--           keep  the step had no effect; the sequence goes on from the checkpoint that it has
--           drop  the sequence goes on from its initial state
--           fail  the sequence is over: its state is gone, and steps are refused until one with
--                 START
--   Returns one word per step
--           'committed'   done
--           'superseded'  the request already had another outcome (expired, cancelled):
--                         acknowledged, no effect. A request of which nothing is known had one
--                         too: nothing else deletes its record before the commit. The action then
--                         is 'keep', or for a START 'fail', or 'drop' where requests are streams
--           'already'     the caller does not own the entry any more, but the request has an
--                         outcome (this very call may have made it, its reply lost)
--           'lost'        the caller does not own the entry any more, and there is no outcome yet:
--                         another worker has it. Or the caller owns it, but its sequence does not
--                         know it (deleted from outside): it is acknowledged, since it could never
--                         be committed
local load, laneCount = KEYS[#KEYS], #KEYS - 1
-- include ../version.lua
-- include owned.lua
-- include settlement.lua
-- include ../set-aside.lua
-- include ../past.lua
local group, consumer, idle = ARGV[1], ARGV[2], ARGV[3]
local streams = ARGV[5] == '1'
local history, written = tonumber(ARGV[6]), tonumber(ARGV[7])
local first = 7 + 4 * laneCount
local count = (#ARGV - first) / 13
-- include ../time.lua
local clock = now
local lapses = clock + tonumber(idle)
local now = string.format('%.0f', clock)

local lanes = {}
for i = 1, laneCount do
  local a = 3 + 4 * i
  local lane = {ready = KEYS[i], base = ARGV[a + 1], forgotten = {}, idling = {}}
  lane.pin = ARGV[a + 2]
  lane.runs = 'runs:' .. lane.base .. ':' .. lane.pin
  -- Almost always nothing is suspected and nothing parked, which one look tells.
  lane.unusual = redis.call('EXISTS', lane.runs, laneKeyOf('queue', lane.ready)) > 0
  lane.parking = lane.unusual and isParking(lane.ready)
  lane.owns = ownedBy(group, consumer, lane.ready, ARGV[a + 3], ARGV[a + 4], 2 * count + 64)
  lanes[i] = lane
end

local names, requests = {}, {}
for a = first, #ARGV - 13, 13 do
  local base = lanes[tonumber(ARGV[a + 1])].base
  addTo(names, base, ARGV[a + 4])
  requests[#requests + 1] = base .. ':' .. ARGV[a + 3]
end
for base, some in pairs(names) do lookUpSequences(base, some) end
local ending = openEndings(load, requests, now, streams)

-- Nothing refers to these any more. They are removed all at once, when the call is done.
local removed = {}
local function remove(lane, name, versions)
  for i = 1, #versions do removed[#removed + 1] = versionKey(lane.base, name, versions[i]) end
end

-- Make room for a step's new version.
-- Returns the list of those that are kept ('' without history), and the versions that are not. None
-- is kept from before a START.
local function supersede(at, kept, start, step, version)
  local gone = versionsOf(at, kept)
  if history == 1 then return '', gone end
  local fresh = string.format('%.0f=%s', step, version)
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

local function commit(lane, entry, request, name, step, start, kind, body, ttl, apart, action, version, reason)
  step = tonumber(step)
  local counted = lane.base .. ':' .. request
  local isOpen, hasEnded, brief, keep = ending.look(counted)
  local seq = sequenceOf(lane.base, name)
  local at, kept, keptUntil = '', '', 0
  if seq then at, kept, keptUntil = seq.at, seq.kept, seq.keptUntil end
  local mine = lane.owns(entry)
  -- Entries of two lanes may have the same id, so the sequence also says in which lane its own is.
  local isIts = seq and seq.entry == entry and seq.on == lane.pin and seq.done + 1 == step
  if not mine or not isIts then
    if mine then
      lane.forgotten[#lane.forgotten + 1] = entry
      ending.leave(counted)
    end
    ending.drop(counted, apart)
    -- A call that is repeated has written again what the sequence may go on from.
    if action == 'put' and not (at .. ' ' .. kept):find(version, 1, true) then remove(lane, name, {version}) end
    if hasEnded then return 'already' end
    return 'lost'
  end
  local said = 'committed'
  if not isOpen then
    said = 'superseded'
    ending.drop(counted, apart)
    if action == 'put' then remove(lane, name, {version}) end
    -- A turn of a conversation that was cancelled has not happened. A sequence of another model has
    -- no state to go on from without its START.
    action = start ~= '1' and 'keep' or streams and 'drop' or 'fail'
  else
    ending.give(counted, brief, keep, mine, kind, body, ttl, apart)
    if reason ~= '' then
      setAside('dead:' .. lane.base, ARGV[4], now, 'request', requestIn(counted), 'job', jobIn(counted), 'sequence', name,
        'step', string.format('%.0f', step), 'reason', reason,
        'runs', (redis.call('HGET', lane.runs, entry) or '0'):match('^%d+'), 'frame', frameOf(lane.ready, entry))
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
    -- A START that was admitted after this step begins the sequence anew. Without one the id is
    -- free at once.
    if action == 'fail' and seq.start <= step then seq.ended = FAILED end
  end
  lane.forgotten[#lane.forgotten + 1] = entry
  ending.leave(counted)
  remove(lane, name, gone)

  -- Every step that was admitted after this one waits, so comparing their numbers tells whether one
  -- does.
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
    -- It may have been admitted for another version: a START begins anew under the latest one.
    local next = cmsgpack.unpack(waiting)
    local deadline = next[1]:match('^[^|]*|[^|]*|[^|]*|[^|]*|(%d+)')
    seq.keptUntil = renewVersions(lane.base, name, from, kept, keptUntil, tonumber(deadline) + DAY)
    seq.request, seq.on = next[1]:match('^[^|]*'), next[3]
    if lane.parking and next[3] == lane.pin then
      -- It takes its turn like others: sequences with many steps get no more than their share.
      park(lane.ready, next[1] .. '|' .. from, next[2], next[4], 'next')
      seq.entry = PARKED
    else
      seq.entry = redis.call('XADD', 'ready:' .. lane.base .. ':' .. next[3], '*', 'm', next[1] .. '|' .. from, 'b', next[2])
    end
  else
    seq.keptUntil = renewVersions(lane.base, name, from, kept, keptUntil, lapses + DAY)
    -- An idle sequence takes memory for long: what it needs again, its next step brings.
    seq.entry, seq.request, seq.on, seq.lapses = '', '', '', lapses
    lane.idling[#lane.idling + 1] = string.format('%.0f', lapses)
    lane.idling[#lane.idling + 1] = name
  end
  noteSequence(lane.base, name, seq)
  return said
end

-- A step fails only where somebody's hand has changed what belongs to its sequence. The others are
-- committed all the same: the caller repeats the call, and reads that they are.
local said, failure = {}, nil
for i = 0, count - 1 do
  local a = first + i * 13
  local whole, word = pcall(commit, lanes[tonumber(ARGV[a + 1])], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5],
    ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9], ARGV[a + 10], ARGV[a + 11], ARGV[a + 12], ARGV[a + 13])
  if whole then said[i + 1] = word else failure = failure or word end
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
  if #lane.idling > 0 then redis.call('ZADD', 'live:' .. lane.base, unpack(lane.idling)) end
end
for i = 1, #removed, 1000 do redis.call('UNLINK', unpack(removed, i, math.min(i + 999, #removed))) end
if failure then error(failure) end
return said
