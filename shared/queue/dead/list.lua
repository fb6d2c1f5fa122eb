#!lua flags=allow-oom,no-writes
-- list.lua: list some of a tenant's requests that workers have set aside in a bucket: newest first,
-- and by model if the time is the same. The cost of a call depends on how many entries it looks at,
-- which is bounded.
--   KEYS.noted   the models with requests set aside (set-aside.lua)
--   ARGV.tag     of the bucket
--   ARGV.tenant
--   ARGV.from    entry at which to begin, '+' for the newest
--   ARGV.behind  of entries with exactly this id, list only models after this name
--   ARGV.most    most entries to list
--   Returns {entries, entry, model}  of each entry: model, id, length of its frame, and its other
--                                    fields; then `from` and `behind` of the next call, '' and ''
--                                    if no more are left
local most = tonumber(ARGV.most)
-- Frames come with their entries, so the script looks at few entries.
local LOOKED, LEAST = 256, 8

local noted = redis.pcall('ZRANGE', KEYS.noted, 0, -1)
local models = noted.err and {} or noted

local function comesFirst(one, other)
  if one.ms ~= other.ms then return one.ms > other.ms end
  if one.seq ~= other.seq then return one.seq > other.seq end
  return one.model < other.model
end

-- Returns the fields without the frame, and the length of the frame.
local function withoutFrame(fields)
  local rest, length = {}, nil
  for i = 1, #fields, 2 do
    if fields[i] == 'frame' then length = length or #fields[i + 1]
    elseif fields[i] == 'bytes of frame' then length = tonumber(fields[i + 1])
    else
      rest[#rest + 1] = fields[i]
      rest[#rest + 1] = fields[i + 1]
    end
  end
  return rest, length or 0
end

local function tenantOf(fields)
  local named = {}
  for i = 1, #fields, 2 do named[fields[i]] = fields[i + 1] end
  return ((named.request or named.sequence or ''):match('^([^:]*):'))
end

local found, reached = {}, nil
local each = math.max(LEAST, math.floor(LOOKED / math.max(1, #models)))
for _, model in ipairs(models) do
  local entries = redis.pcall('XREVRANGE', 'dead:' .. ARGV.tag .. ':' .. model, ARGV.from, '-', 'COUNT', each)
  for i = 1, entries.err and 0 or #entries do
    local id, fields = entries[i][1], entries[i][2]
    local ms, seq = id:match('^(%d+)-(%d+)$')
    local one = {ms = tonumber(ms), seq = tonumber(seq), model = model, id = id, fields = fields}
    if (id ~= ARGV.from or model > ARGV.behind) and tenantOf(fields) == ARGV.tenant then found[#found + 1] = one end
    -- There may be more entries behind the last.
    if i == each and (not reached or comesFirst(one, reached)) then reached = one end
  end
end
table.sort(found, comesFirst)

local told = {}
for _, one in ipairs(found) do
  if #told == most then
    reached = told[most].from
    break
  end
  if reached and comesFirst(reached, one) then break end
  local rest, length = withoutFrame(one.fields)
  told[#told + 1] = {one.model, one.id, length, rest, from = one}
end
return {told, reached and reached.id or '', reached and reached.model or ''}
