-- set-aside.lua: requests set aside. Only the newest stay, and of a long frame only the beginning,
-- so that these requests take no more than their share of memory. A piece of the scripts that set
-- requests aside.
--   limits  how many stay, and for how long (records/requests.ts). The oldest go when another one
--           comes; the stream goes as a whole when none has come for so long
--   key `aside:{b}`  sorted set: the models of the bucket with requests set aside, by the Redis ms
--                    of the newest
local function setAside(dead, limits, now, ...)
  local entries, most, age = limits:match(PATTERN.asideLimits(entries, bytes, age))
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
  redis.call('XTRIM', dead, 'MINID', string.format('%d', tonumber(now) - tonumber(age)))
  redis.call('PEXPIRE', dead, age)
  local tag, model = dead:match('^dead:({[^}]*}):(.*)$')
  redis.pcall('ZADD', 'aside:' .. tag, now, model)
end

-- Return the name of a request, and the name of the job that the request runs, or ''. `request` is
-- the key of the request without the kind of the key.
local function requestIn(request) return (request:match('^{[^}]*}:[^:]*:(.*)$')) end
local function jobIn(request)
  local job = redis.pcall('HGET', 'out:' .. request, 'job')
  return type(job) == 'string' and job or ''
end

-- The frame of an entry; '' if a person deleted the entry while a worker held it.
local function frameOf(ready, entry)
  local found = redis.call('XRANGE', ready, entry, entry)[1]
  return found and found[2][4] or ''
end
