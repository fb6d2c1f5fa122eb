#!lua flags=allow-oom
-- overdue.lua: find jobs that have been due for some time. Also removes members that name no job,
-- because the job is gone or a person wrote the member by hand.
--   KEYS.load   the counts (load.lua)
--   ARGV.forMs  ms for which the jobs have been due
--   ARGV.most   most jobs
--   Returns a list of name, as in the job's key, and how many requests the job has had
local load = KEYS.load
-- include ../pieces/later.lua
-- include ../pieces/time.lua
local before = now - ARGV.forMs
local found = redis.pcall('ZRANGE', laterKey(load), '-inf', string.format('%d', before), 'BYSCORE', 'LIMIT', 0, ARGV.most)
if found.err then return {} end
local told = {}
for _, member in ipairs(found) do
  local size, name = member:match(PATTERN.sized(bytes, name))
  local made = name and redis.pcall('HGET', 'job:' .. name, 'made')
  if type(made) == 'string' then
    told[#told + 1] = name
    told[#told + 1] = made
  else
    redis.call('ZREM', laterKey(load), member)
    if name and name:find('^[^:]*:[^:]*:[^:]*:') then countLater(load, name, -1, -size) end
  end
end
return told
