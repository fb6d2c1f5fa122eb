-- events.lua: events for webhooks. The script that makes a thing happen notes the event in the same
-- call, so neither exists without the other. If no webhook wants an event, a call that makes
-- something happen pays one HGET for each tenant, and every other call pays nothing.
--   key `wanted:{b}`  hash: tenant -> the events that its webhooks want (records/webhooks.ts)
--   key `events:{b}`  stream, group `jobs`: fields t (tenant), e (type), d (facts, as JSON). Beyond
--                     EVENTS_MOST entries the oldest go; so many mean that no jobs process has read
--                     for long
local EVENTS_MOST = 100000
local wantedByTenant = {}

-- A value that a person wrote by hand in another form counts as no events.
local function wantsEvent(tag, tenant, event)
  local wanted = wantedByTenant[tag .. tenant]
  if not wanted then
    local found = redis.pcall('HGET', 'wanted:' .. tag, tenant)
    local events = type(found) == 'string' and found:match(PATTERN.wanted(events)) or ''
    wanted = ' ' .. events .. ' '
    wantedByTenant[tag .. tenant] = wanted
  end
  return wanted:find(' ' .. event .. ' ', 1, true) ~= nil
end

local function noteEvent(tag, tenant, event, facts)
  redis.pcall('XADD', 'events:' .. tag, 'MAXLEN', '~', EVENTS_MOST, '*', 't', tenant, 'e', event, 'd', cjson.encode(facts))
end

-- Note that a sequence has idled out; this call removes the sequence, or a START begins again under
-- its name.
--   `idle`  how long the sequence was kept, in ms; nil if the call does not know
local function noteExpired(base, name, seq, idle)
  if seq.ended ~= '0' then return end
  local tag, model = base:match('^({[^}]*}):(.*)$')
  local tenant, id = name:match('^([^:]*):(.*)$')
  if not tenant or not wantsEvent(tag, tenant, 'sequence.expired') then return end
  noteEvent(tag, tenant, 'sequence.expired', {
    model = model, version = seq.pin:match('^[^:]*'), sequence = id, steps = seq.next - seq.start + 1,
    last = idle and string.format('%d', seq.lapses - idle) or nil,
  })
end
