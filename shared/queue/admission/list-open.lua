#!lua flags=no-writes,allow-oom
-- list-open.lua: describe some of the requests of a tenant for a model that have not ended, in no
-- order. The cost of a call depends on how many open requests it looks at, which is bounded. A
-- request that is open from the first call of a listing to the last appears at least once.
--   KEYS.load      the counts (load.lua), which name every open request
--   ARGV.model
--   ARGV.tenant
--   ARGV.cursor    '0' to begin
--   ARGV.after     last name of the answers so far at this cursor; '' for none
--   ARGV.most      most requests to describe
--   ARGV.version   of the model; '' for any
--   ARGV.state     'queued' or 'running'; '' for any
--   ARGV.group     of the workers
--   Returns {requests, cursor, name}  requests (records/requests.ts); then `cursor` and `after` of
--                                     the next call, or cursor '0' without a name if none are left
local load = KEYS.load
-- include ../pieces/outcome.lua
local AT_ONCE, MOST_LOOKED = 100, 1000

-- Returns the entry of a request in a ready stream, '@' while it is parked, or '' while it waits
-- behind another step; and the pin of its lane.
local function entryOf(base, request, sequence, record)
  if sequence == '' then return record.parked and '@' or record.entry or '', record.pin end
  local seq = readableSequence(base, sequence)
  if not seq or seq.request ~= request then return '', record.pin end
  return seq.entry, seq.on
end

-- Returns the number of a step as clients count, or ''.
local function stepOf(base, sequence, step)
  local seq = sequence ~= '' and readableSequence(base, sequence)
  local number = seq and tonumber(step) - seq.start + 1
  return number and number > 0 and string.format('%d', number) or ''
end

-- Returns the description of a request, or nil if it has ended.
local function describe(name, size)
  local out = 'out:' .. name
  local record = recordOf(load, out)
  if not record or record.kind or ARGV.version ~= '' and record.pin:match('^[^:]*') ~= ARGV.version then return nil end
  local base, request = name:match('^({[^}]*}:[^:]*):(.*)$')
  local step, sequence = size:match(PATTERN.brief(step, sequence))
  sequence = sequence or ''
  local entry, pin = entryOf(base, request, sequence, record)
  local pending = {}
  if entry ~= '' and entry ~= '@' then
    pending = redis.pcall('XPENDING', readyOf(out, pin), ARGV.group, entry, entry, 1)
    pending = not pending.err and pending[1] or {}
  end
  local state = pending[2] and 'running' or 'queued'
  if ARGV.state ~= '' and ARGV.state ~= state then return nil end
  return LIST.openRequest{name = name, state = state, at = record.brief and record.brief.at or redis.call('HGET', out, 'at') or '',
    terms = record.brief and record.brief.terms or record.parked or '', sequence = sequence,
    step = stepOf(base, sequence, step), worker = pending[2] or '', deliveries = pending[4] or 0,
    records = redis.call('LLEN', 'log:' .. name)}
end

local cursor, after, most = ARGV.cursor, ARGV.after, tonumber(ARGV.most)
local found, looked = {}, 0
repeat
  local reply = redis.call('HSCAN', openKey(load), cursor, 'MATCH', '*:' .. ARGV.model .. ':' .. ARGV.tenant .. ':*',
    'COUNT', AT_ONCE)
  local names, sizes = {}, {}
  for i = 1, #reply[2], 2 do
    if after == '' or reply[2][i] > after then names[#names + 1] = reply[2][i] end
    sizes[reply[2][i]] = reply[2][i + 1]
  end
  -- A page may end among the names of a single cursor. In this order, the last name of the page is
  -- the place to continue.
  table.sort(names)
  for i = 1, #names do
    if #found == most then return {found, cursor, names[i - 1] or after} end
    found[#found + 1] = describe(names[i], sizes[names[i]])
  end
  cursor, after, looked = reply[1], '', looked + AT_ONCE
until cursor == '0' or looked >= MOST_LOOKED
return {found, cursor, ''}
