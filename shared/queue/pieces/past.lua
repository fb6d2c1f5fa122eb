-- past.lua: why sequences exist no more. A script that removes sequences notes why, with three
-- commands for each call. A script that refuses a step without a sequence looks the reason up.
--   key `past:{b}:m:n`  hash: name of a sequence -> why, as `WHYS` has it. `n` counts stretches of
--                       ten minutes of Redis's time, so a note lasts ten to twenty minutes. Of more
--                       than PAST_MOST notes only the newest last
local PAST_MS, PAST_MOST = 600000, 10000
local WHYS = {['1'] = 'ended', ['2'] = 'deleted', ['3'] = 'cancelled', ['4'] = 'expired'}
local DELETED, FAILED, EXPIRED = '2', '3', '4'

local function pastKey(base, now, back) return string.format('past:%s:%.0f', base, math.floor(now / PAST_MS) - back) end

local pastByBase = {}

-- `why` is the field `ended` of the sequence's facts, or EXPIRED.
local function notePast(base, name, why)
  local fields = pastByBase[base] or {}
  pastByBase[base] = fields
  fields[#fields + 1] = name
  fields[#fields + 1] = why
end

local function writePast(now)
  for base, fields in pairs(pastByBase) do
    local key = pastKey(base, now, 0)
    if redis.call('HLEN', key) >= PAST_MOST then redis.call('RENAME', key, pastKey(base, now, 1)) end
    for i = 1, #fields, 1000 do redis.call('HSET', key, unpack(fields, i, math.min(i + 999, #fields))) end
    redis.call('PEXPIRE', key, 2 * PAST_MS)
  end
  pastByBase = {}
end

-- Returns why there is no such sequence.
local function whyPast(base, name, now)
  for back = 0, 1 do
    local why = redis.call('HGET', pastKey(base, now, back), name)
    if why then return WHYS[why] end
  end
  return 'never_started'
end
