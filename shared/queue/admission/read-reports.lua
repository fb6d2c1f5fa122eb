#!lua flags=no-writes,allow-oom
-- read-reports.lua: read what all processes have counted. A burial moves a report from one hash to
-- the other, so one call reads both.
--   KEYS.reports  hash; see report.lua
--   KEYS.past     hash; see report.lua
--   Returns {fields and values of reports, values of past}
return {redis.call('HGETALL', KEYS.reports), redis.call('HVALS', KEYS.past)}
