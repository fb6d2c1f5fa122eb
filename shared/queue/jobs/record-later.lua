#!lua
-- record-later.lua: record a job to queue later (later.lua). A full Redis refuses this script.
--   KEYS.record     of the job
--   KEYS.load       the counts (load.lua)
--   KEYS.outcome    record of its first request (outcome.lua), which exists if a job under the same
--                   key was queued at once
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.job        name of the job
--   ARGV.due        when the job is due: Redis ms, or '+' and ms from now
--   ARGV.digest
--   ARGV.ttl        ms for which the record stays after the job's end
--   ARGV.most       most jobs of a tenant that may wait; -1: no limit
--   ARGV.mostBytes  most bytes of all jobs that may wait; -1: no limit
--   ARGV.rates      of the client (rates.lua), a list in JSON
--   ARGV.repeated   whether an earlier copy of the call may have taken effect, 0/1
--   ARGV.fields[]   of its record; `wait` is among them:
--     .name
--     .value
--   Returns {said}  'recorded', 'known' if the job exists already, 'mismatch' if the name has
--                   another digest, or 'too-many' or 'too-large' by the limit in the way. Only
--                   'recorded' writes, but for the rates
--           {'recorded' or 'known', name, remaining, reset}, {'too-soon', name, wait}
--                   as in admit.lua, if the client has rates
local load = KEYS.load
-- include ../pieces/job.lua
-- include ../pieces/rates.lua
local base, name = ARGV.base, ARGV.job
-- include ../pieces/time.lua
local rates, us = cjson.decode(ARGV.rates), time[1] * 1000000 + time[2]
local asked = redis.call('HGET', KEYS.record, 'digest') or redis.call('HGET', KEYS.outcome, 'digest')
if ARGV.repeated == '1' and asked == ARGV.digest then return {'known'} end
local one = ratesOfOne(load, rates, us)
if one.early then return one.early end
if asked and asked ~= ARGV.digest then return {'mismatch'} end
if asked then return one.charged('known') end
local fields, wait, bytes = {'digest', ARGV.digest, 'request', '', 'made', '0'}, 0, 0
for i = 1, #ARGV.fields do
  fields[#fields + 1], fields[#fields + 2] = ARGV.fields[i].name, ARGV.fields[i].value
  if ARGV.fields[i].name == 'wait' then wait = tonumber(ARGV.fields[i].value) end
  if ARGV.fields[i].name == 'body' then bytes = #(ARGV.fields[i].value) end
end
local tenant = 'l:' .. name:match('^[^:]*')
local sums = readLoads(load, {'later', tenant})
local most, mostBytes = tonumber(ARGV.most), tonumber(ARGV.mostBytes)
if most >= 0 and sums[tenant].items >= most then return {'too-many'} end
if mostBytes >= 0 and sums.later.bytes + bytes + LATER_BYTES > mostBytes then return {'too-large'} end
local at = ARGV.due:sub(1, 1) == '+' and now + ARGV.due:sub(2) or tonumber(ARGV.due)
fields[#fields + 1], fields[#fields + 2] = 'run', string.format('%d', at)
recordJob(base, name, fields, string.format('%d', now))
putLater(load, base, name, bytes, '0', at)
keepJob(base, name, math.max(at - now, 0) + wait + ARGV.ttl + 86400000)
return one.charged('recorded')
