-- events.lua: what has happened, for webhooks. The script that makes a thing happen notes it in the
-- same call, so neither is there without the other. Where nobody wants to be told, a call that
-- makes something happen pays one HGET for each tenant, and every other call nothing.
--   key `wanted:{b}`  hash: tenant -> `revision|type type …`, the events that its webhooks want
--   key `events:{b}`  stream, group `jobs`: fields t (tenant), e (type), d (facts, as JSON). Past
--                     EVENTS_MOST the oldest go: then nobody has taken any for long
local EVENTS_MOST = 100000
local wantedByTenant = {}

-- What somebody's hand has put there in another form is as good as nothing.
local function wantsEvent(tag, tenant, event)
  local wanted = wantedByTenant[tag .. tenant]
  if not wanted then
    local found = redis.pcall('HGET', 'wanted:' .. tag, tenant)
    local events = type(found) == 'string' and found:match('^%d+|(.*)$') or ''
    wanted = ' ' .. events .. ' '
    wantedByTenant[tag .. tenant] = wanted
  end
  return wanted:find(' ' .. event .. ' ', 1, true) ~= nil
end

local function noteEvent(tag, tenant, event, facts)
  redis.pcall('XADD', 'events:' .. tag, 'MAXLEN', '~', EVENTS_MOST, '*', 't', tenant, 'e', event, 'd', cjson.encode(facts))
end

-- A sequence has idled out, and is removed or begun anew in this call.
--   `idle`  for how long it was kept, in ms; nil where the call does not know it
local function noteExpired(base, name, seq, idle)
  if seq.ended ~= '0' then return end
  local tag, model = base:match('^({[^}]*}):(.*)$')
  local tenant, id = name:match('^([^:]*):(.*)$')
  if not tenant or not wantsEvent(tag, tenant, 'sequence.expired') then return end
  noteEvent(tag, tenant, 'sequence.expired', {
    model = model, version = seq.pin:match('^[^:]*'), sequence = id, steps = seq.next - seq.start + 1,
    last = idle and string.format('%.0f', seq.lapses - idle) or nil,
  })
end
