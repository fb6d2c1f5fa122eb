-- later.lua: jobs that are to be queued later, since their client says so, or since they have
-- failed and are to be tried once more. When each is due is noted here, in the step that makes it
-- so, and an entry of the outbox tells the jobs processes of it. They look here now and then, too,
-- so what the entry, or a timer of theirs, was lost for is only late. Beside load.lua:
--   key `later:…`  sorted set: `<bytes>|<job as in its key>`, by the Redis ms at which it is due
--   field `later` of `load:…`, and `l:<tenant>`  how many there are, and their bytes
--   field `next` of a job's record (job.lua)  `<Redis ms>|<made>`: when it is due, and how many
--     requests it has had then. Where it has had more since, this says nothing any more
-- include load.lua
-- include events.lua
local function laterKey(load) return 'later:' .. load:sub(6) end

-- What such a job takes beside its body: its record, its places here and in the index, and a timer.
local LATER_BYTES = 3072

-- Returns when a job is due, by two fields of its record; nil if it does not wait.
local function dueOf(due, made)
  local at, after = (due or ''):match('^(%d+)|(%d+)$')
  return at and after == (made or '0') and tonumber(at) or nil
end

local function countLater(load, name, items, bytes)
  local sums = readLoads(load, {'later', 'l:' .. name:match('^[^:]*:[^:]*:([^:]*)')})
  for _, sum in pairs(sums) do sum.items, sum.bytes = sum.items + items, sum.bytes + bytes end
  writeLoads(load, sums)
end

-- Have somebody look at when a job is due.
local function tellLater(base, name, made)
  local tag, model = base:match('^({[^}]*}):(.*)$')
  noteEvent(tag, name:match('^[^:]*'), 'due', {job = model .. ':' .. name, run = made})
end

-- A job is due at `at`, in Redis ms. `bytes` are those of its body, here and below.
local function putLater(load, base, name, bytes, made, at)
  local due, all = string.format('%.0f', at), base .. ':' .. name
  redis.call('HSET', 'job:' .. all, 'next', due .. '|' .. made)
  bytes = bytes + LATER_BYTES
  if redis.pcall('ZADD', laterKey(load), due, bytes .. '|' .. all) == 1 then countLater(load, all, 1, bytes) end
  tellLater(base, name, made)
end

-- A job waits no longer, if it does.
local function dropLater(load, base, name, bytes)
  local all = base .. ':' .. name
  redis.call('HDEL', 'job:' .. all, 'next', 'refused')
  bytes = bytes + LATER_BYTES
  if redis.pcall('ZREM', laterKey(load), bytes .. '|' .. all) == 1 then countLater(load, all, -1, -bytes) end
end
