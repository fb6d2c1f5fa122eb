#!lua flags=allow-oom,no-writes
-- list.lua: list some of a tenant's jobs in a bucket, the newest first. The cost of a call grows
-- with the jobs looked at, of which there is a limit, not with all jobs. The script leaves the
-- index entries of gone jobs to tidy.lua, so that it also works on a Redis that takes no writes.
--   KEYS.jobs     of the tenant (job.lua)
--   KEYS.load     the counts (load.lua)
--   ARGV.tag      of the bucket
--   ARGV.group
--   ARGV.at       Redis ms: begin behind the job recorded at this time under the id; '+inf' to
--                 begin with the newest
--   ARGV.id       of that job; '' to begin with the newest
--   ARGV.most     most jobs in the list
--   ARGV.filters  JSON: `states`, a list; `model`, a name; `schedule`, an id; `labels`, each a
--                 name, a value, and both as they stand in JSON. Absent: any
--   Returns {views, at, id}  views as in view.lua; the beginning of the next page, '' and '' if no
--                            jobs are left
local load = KEYS.load
-- include view.lua
local AT_ONCE, MOST_LOOKED = 50, 200
local at, id, most, filters = ARGV.at, ARGV.id, tonumber(ARGV.most), cjson.decode(ARGV.filters)
-- include ../pieces/time.lua

local states
for _, state in ipairs(filters.states or {}) do
  states = states or {}
  states[state] = true
end

local function hasLabels(options)
  if not filters.labels then return true end
  -- Finding the text is far quicker than parsing it.
  for _, pair in ipairs(filters.labels) do
    if not options:find(pair[3], 1, true) then return false end
  end
  local whole, asked = pcall(cjson.decode, options)
  local labels = whole and type(asked) == 'table' and asked.labels or {}
  for _, pair in ipairs(filters.labels) do
    if labels[pair[1]] ~= pair[2] then return false end
  end
  return true
end

local views, looked, skipped = {}, 0, 0
local nextAt, nextId = at, id
repeat
  local found = redis.call('ZRANGE', KEYS.jobs, at, '-inf', 'BYSCORE', 'REV', 'LIMIT', skipped, AT_ONCE, 'WITHSCORES')
  for i = 1, #found, 2 do
    local one, score = found[i], found[i + 1]
    if #views == most then break end
    if id == '' or tonumber(score) < tonumber(at) or one < id then
      nextAt, nextId, looked = score, one, looked + 1
      local model, name = one:match('^([^:]*):(.*)$')
      if not filters.model or filters.model == model then
        local noted = redis.pcall('HMGET', jobKey(ARGV.tag .. ':' .. model, name), 'options', 'schedule')
        local options = not noted.err and noted[1]
        local fits = type(options) ~= 'string' or
          (not filters.schedule or filters.schedule == noted[2]) and hasLabels(options)
        local view = fits and viewOf(load, ARGV.group, now, ARGV.tag .. ':' .. model, name)
        if fits and view and (not states or states[view.state]) then
          view.name = one
          views[#views + 1] = packJobView(view)
        end
      end
    end
  end
  skipped = skipped + AT_ONCE
  if #found < 2 * AT_ONCE and #views < most then nextAt, nextId = '', '' end
until nextAt == '' or #views == most or looked >= MOST_LOOKED
return {views, nextAt, nextId}
