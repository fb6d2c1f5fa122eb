-- later.lua: jobs to queue later, because the client says so, or because a failed job gets a
-- further attempt. The step that delays a job notes the time here, and an outbox entry tells the
-- jobs processes. Jobs processes also look here at intervals, so a lost entry or timer only makes a
-- job late. Beside load.lua:
--   key `later:…`  sorted set: bytes and job as in its key (records/counts.ts), by the Redis ms at
--                  which the job is due
--   field `later` of `load:…`, and `l:<tenant>`  how many jobs there are, and their bytes
--   field `next` of a job's record (job.lua)  when the job is due (records/jobs.ts)
-- include load.lua
-- include events.lua
local function laterKey(load) return 'later:' .. load:sub(6) end

-- Bytes of a waiting job beside the body: the record, the places here and in the index, and a
-- timer.
local LATER_BYTES = 3072

-- Returns when a job is due, from two fields of the job's record; nil if the job does not wait.
local function dueOf(due, made)
  local at, after = (due or ''):match(PATTERN.due(at, made))
  return at and after == (made or '0') and tonumber(at) or nil
end

local function countLater(load, name, items, bytes)
  local sums = readLoads(load, {'later', 'l:' .. name:match('^[^:]*:[^:]*:([^:]*)')})
  for _, sum in pairs(sums) do sum.items, sum.bytes = sum.items + items, sum.bytes + bytes end
  writeLoads(load, sums)
end

-- Ask the jobs processes to look at when a job is due.
local function tellLater(base, name, made)
  local tag, model = base:match('^({[^}]*}):(.*)$')
  noteEvent(tag, name:match('^[^:]*'), 'due', {job = model .. ':' .. name, run = made})
end

-- Make a job wait until `at`, in Redis ms. `bytes` is the size of the job's body, here and below.
local function putLater(load, base, name, bytes, made, at)
  local due, all = string.format('%d', at), base .. ':' .. name
  redis.call('HSET', 'job:' .. all, 'next', TEXT.due{at = due, made = made})
  bytes = bytes + LATER_BYTES
  if redis.pcall('ZADD', laterKey(load), due, TEXT.sized{bytes = bytes, name = all}) == 1 then countLater(load, all, 1, bytes) end
  tellLater(base, name, made)
end

-- End the wait of a job, if the job waits.
local function dropLater(load, base, name, bytes)
  local all = base .. ':' .. name
  redis.call('HDEL', 'job:' .. all, 'next', 'refused')
  bytes = bytes + LATER_BYTES
  if redis.pcall('ZREM', laterKey(load), TEXT.sized{bytes = bytes, name = all}) == 1 then countLater(load, all, -1, -bytes) end
end
