#!lua flags=no-writes,allow-oom
-- read-reports.lua: read what all processes have counted. A burial moves a report from one hash to
-- the other, so one call reads both.
--   KEYS.reports  hash; see report.lua
--   KEYS.past     hash; see report.lua
--   ARGV.own      a process that knows newer numbers of its own; '' for none
--   Returns {values of reports, values of past, values of reports that are the process's own}
local own, pages = {}, ARGV.own ~= '' and redis.call('HGET', KEYS.reports, ARGV.own)
for n = 1, math.min(tonumber(pages or '0') or 0, 10000) - 1 do
  own[n] = redis.call('HGET', KEYS.reports, ARGV.own .. ' ' .. n) or ''
end
return {redis.call('HVALS', KEYS.reports), redis.call('HVALS', KEYS.past), own}
