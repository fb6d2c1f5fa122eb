-- sequence.lua: what is known of the sequences of a model in a bucket. A call reads all those that
-- it names with one command for each model and bucket, and writes those that it has changed with
-- one. Every script that looks at a sequence includes this file.
--   key `seqs:{b}:m`  hash: name of a sequence -> its facts, joined by `|`. Of these
--     next    number of the last step that was admitted; a START does not begin at 1 again
--     done    number of the last step that has ended      start  number of the last START
--     ended   '0' while it goes on; else why it takes no step but a START: '1' its last step has
--             END, '2' it was deleted, '3' it has failed (past.lua)
--     at      version of the checkpoint that it goes on from (version.lua)
--     pin     of its last START
--     entry   in the ready stream of the lane `on`, of the request `request`; PARKED where that is
--             parked; '' while it is idle
--     lapses  Redis ms at which it expires idle; 0 before it has been idle
--     keptUntil, kept   as version.lua has them
-- Numbers are numbers in Lua, and all else is text. The facts of a sequence are changed only once
-- nothing can fail any more, since a later request of the call may be for the same sequence.
local FACTS = '^(%d+)|(%d+)|(%d+)|([0-3])|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(%d+)|(%d+)|([^|]*)$'

local function unpackFacts(text)
  local next, done, start, ended, at, pin, entry, on, request, lapses, keptUntil, kept = text:match(FACTS)
  if not next then error('the facts of a sequence cannot be read') end
  return {
    next = tonumber(next), done = tonumber(done), start = tonumber(start), ended = ended, at = at, pin = pin,
    entry = entry, on = on, request = request, lapses = tonumber(lapses), keptUntil = tonumber(keptUntil), kept = kept,
  }
end

local function packFacts(s)
  return string.format('%.0f|%.0f|%.0f|%s|%s|%s|%s|%s|%s|%.0f|%.0f|%s', s.next, s.done, s.start, s.ended, s.at, s.pin,
    s.entry, s.on, s.request, s.lapses, s.keptUntil, s.kept)
end

-- A sequence that begins: it has no step yet.
local function newSequence()
  return {next = 0, done = 0, start = 1, ended = '0', at = '', pin = '', entry = '', on = '', request = '', lapses = 0,
    keptUntil = 0, kept = ''}
end

local sequencesByBase = {}

local function sequencesOf(base)
  local all = sequencesByBase[base]
  if not all then
    all = {key = 'seqs:' .. base, found = {}, changed = {}}
    sequencesByBase[base] = all
  end
  return all
end

-- The most fields that one command names, since Lua's unpack takes a limited number of values.
local FIELDS_AT_ONCE = 1000

-- Put a name into the list of a base.
local function addTo(lists, base, name)
  local names = lists[base] or {}
  lists[base] = names
  names[#names + 1] = name
end

-- Look up sequences of a model in a bucket that the call has not looked up yet.
local function lookUpSequences(base, names)
  local all, unknown = sequencesOf(base), {}
  for i = 1, #names do
    if all.found[names[i]] == nil then
      all.found[names[i]] = false
      unknown[#unknown + 1] = names[i]
    end
  end
  for first = 1, #unknown, FIELDS_AT_ONCE do
    local last = math.min(first + FIELDS_AT_ONCE - 1, #unknown)
    -- The error fails each request that is for one of these sequences, and no other.
    local texts = redis.pcall('HMGET', all.key, unpack(unknown, first, last))
    if texts.err then all.failed = texts end
    for i = first, last do all.found[unknown[i]] = texts[i - first + 1] or false end
  end
end

-- Returns the facts of a sequence, or nil.
local function sequenceOf(base, name)
  local all = sequencesOf(base)
  if all.found[name] == nil then lookUpSequences(base, {name}) end
  if all.failed then error(all.failed) end
  local facts = all.found[name]
  if type(facts) == 'string' then
    facts = unpackFacts(facts)
    all.found[name] = facts
  end
  return facts or nil
end

-- Does the same, but facts that somebody has made unreadable by hand count as no sequence: no step
-- could go on from them.
local function readableSequence(base, name)
  local whole, facts = pcall(sequenceOf, base, name)
  if whole then return facts end
  local all = sequencesOf(base)
  if all.failed then error(all.failed) end
  all.found[name], all.changed[name] = false, true
  return nil
end

-- From now on these are the facts of a sequence; nil: there is none any more.
local function noteSequence(base, name, facts)
  local all = sequencesOf(base)
  all.found[name], all.changed[name] = facts or false, true
end

local function writeSequences()
  for _, all in pairs(sequencesByBase) do
    local fields, gone = {}, {}
    for name in pairs(all.changed) do
      if all.found[name] then
        fields[#fields + 1] = name
        fields[#fields + 1] = packFacts(all.found[name])
      else
        gone[#gone + 1] = name
      end
    end
    for i = 1, #fields, FIELDS_AT_ONCE do
      redis.call('HSET', all.key, unpack(fields, i, math.min(i + FIELDS_AT_ONCE - 1, #fields)))
    end
    for i = 1, #gone, FIELDS_AT_ONCE do
      redis.call('HDEL', all.key, unpack(gone, i, math.min(i + FIELDS_AT_ONCE - 1, #gone)))
    end
    all.changed = {}
  end
end

local function isBusy(facts) return facts.entry ~= '' end

-- Whether a sequence has idled out. The reaper removes it, sooner or later (reap-idle.lua).
local function hasLapsed(facts, now) return not isBusy(facts) and facts.lapses <= now end
