-- set-aside.lua: what is kept of requests that were set aside: the newest, and of a long frame only
-- its beginning, so they take no more than their share of memory. Scripts include this file that
-- set one aside.
--   limits  `<entries> <bytes of a field> <ms>`: how many are kept for a model in a bucket, how
--           much of each frame, and for how long. The oldest leave when another one comes; the
--           stream goes as a whole when none has come for so long
--   key `aside:{b}`  sorted set: the models of the bucket of which there are some, by when the
--                    newest was set aside, in Redis ms
local function setAside(dead, limits, now, ...)
  local entries, most, age = limits:match('^(%d+) (%d+) (%d+)$')
  local fields = {...}
  for i = 2, #fields, 2 do
    local length = #fields[i]
    if length > tonumber(most) then
      fields[i] = fields[i]:sub(1, tonumber(most))
      fields[#fields + 1] = 'bytes of ' .. fields[i - 1]
      fields[#fields + 1] = tostring(length)
    end
  end
  redis.call('XADD', dead, 'MAXLEN', entries, '*', unpack(fields))
  redis.call('XTRIM', dead, 'MINID', string.format('%.0f', tonumber(now) - tonumber(age)))
  redis.call('PEXPIRE', dead, age)
  local tag, model = dead:match('^dead:({[^}]*}):(.*)$')
  redis.pcall('ZADD', 'aside:' .. tag, now, model)
end

-- The name of a request, and that of the job that it runs, or ''. `request` is named as in its key,
-- without the kind of the key.
local function requestIn(request) return (request:match('^{[^}]*}:[^:]*:(.*)$')) end
local function jobIn(request)
  local job = redis.pcall('HGET', 'out:' .. request, 'job')
  return type(job) == 'string' and job or ''
end

-- The frame of an entry; '' where somebody's hand has deleted it while a worker held it.
local function frameOf(ready, entry)
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  return found and found[2][4] or ''
end
