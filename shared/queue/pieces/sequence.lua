-- sequence.lua: the facts of the sequences of a model in a bucket. For each model and bucket, a
-- call reads all its sequences with one command, and writes all changes with one command. Every
-- script that looks at a sequence includes this file.
--   key `seqs:{b}:m`  hash: name of a sequence -> its facts (records/sequence.ts)
-- Numbers are Lua numbers, and all else is text. A script changes the facts of a sequence only when
-- nothing more can fail for the request, because a later request of the call may be for the same
-- sequence.
-- record sequence: unpackSequence packSequence newSequence
-- include held.lua
local UNREADABLE = 'the facts of a sequence cannot be read'

local sequencesByBase = {}

local function sequencesOf(base)
  local all = sequencesByBase[base]
  if not all then
    all = {key = 'seqs:' .. base, found = {}, changed = {}}
    sequencesByBase[base] = all
  end
  return all
end

-- The most fields that one command names, because Lua's unpack takes a limited number of values.
local FIELDS_AT_ONCE = 1000

-- Put a name into the list of a base.
local function addTo(lists, base, name)
  local names = lists[base] or {}
  lists[base] = names
  names[#names + 1] = name
end

-- Look up sequences of a model in a bucket, except those that the call has looked up before.
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
    facts = unpackSequence(facts) or error(UNREADABLE)
    all.found[name] = facts
  end
  return facts or nil
end

-- Set the facts of a sequence that this call has looked up; nil removes the sequence.
local function noteSequence(base, name, facts)
  local all = sequencesOf(base)
  if not facts ~= not all.found[name] then
    local tenant = name:match('^[^:]*')
    all.held = all.held or {}
    all.held[tenant] = (all.held[tenant] or 0) + (facts and 1 or -1)
  end
  all.found[name], all.changed[name] = facts or false, true
end

-- Does the same as sequenceOf, but unreadable facts, which a person changed by hand, count as no
-- sequence: no step could continue from such facts.
local function readableSequence(base, name)
  local whole, facts = pcall(sequenceOf, base, name)
  if whole then return facts end
  local all = sequencesOf(base)
  if all.failed then error(all.failed) end
  noteSequence(base, name, nil)
  return nil
end

-- Set the facts of a sequence that this call has looked up and not taken apart, as their text.
local function noteFacts(base, name, text)
  local all = sequencesOf(base)
  all.found[name], all.changed[name] = text, true
end

local function writeSequences()
  for base, all in pairs(sequencesByBase) do
    local fields, gone = {}, {}
    for name in pairs(all.changed) do
      if all.found[name] then
        fields[#fields + 1] = name
        local facts = all.found[name]
        fields[#fields + 1] = type(facts) == 'string' and facts or packSequence(facts)
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
    if all.held then changeHeld(base, all.held) end
    all.held = nil
  end
end

local function isBusy(facts) return facts.entry ~= '' end

-- Whether a sequence has idled out. reap-idle.lua removes the sequence, sooner or later.
local function hasLapsed(facts, now) return not isBusy(facts) and facts.lapses <= now end
