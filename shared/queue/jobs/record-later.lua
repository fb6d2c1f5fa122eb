#!lua
-- record-later.lua: record a job to queue later (later.lua). A full Redis refuses this script.
--   KEYS[1] record of the job   KEYS[2] key of the counts (load.lua)
--   KEYS[3] record of its first request (outcome.lua), which exists if a job under the same key was
--           queued at once
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the job
--   ARGV[3] when the job is due: Redis ms, or '+' and ms from now   ARGV[4] digest
--   ARGV[5] ms for which the record stays after the job's end
--   ARGV[6] most jobs of a tenant that may wait, and ARGV[7] most bytes of all; -1: no limit
--   ARGV[8] … fields of its record, and their values; `wait` is among them
--   Returns 'recorded', 'known' if the job exists already, 'mismatch' if the name has another
--                       digest, or 'too-many' or 'too-large' by the limit in the way; only
--                       'recorded' writes
local load = KEYS[2]
-- include ../pieces/job.lua
local base, name = ARGV[1], ARGV[2]
local asked = redis.call('HGET', KEYS[1], 'digest') or redis.call('HGET', KEYS[3], 'digest')
if asked then return asked == ARGV[4] and 'known' or 'mismatch' end
-- include ../pieces/time.lua
local fields, wait, bytes = {'digest', ARGV[4], 'request', '', 'made', '0'}, 0, 0
for a = 8, #ARGV, 2 do
  fields[#fields + 1], fields[#fields + 2] = ARGV[a], ARGV[a + 1]
  if ARGV[a] == 'wait' then wait = tonumber(ARGV[a + 1]) end
  if ARGV[a] == 'body' then bytes = #ARGV[a + 1] end
end
local tenant = 'l:' .. name:match('^[^:]*')
local sums = readLoads(load, {'later', tenant})
local most, mostBytes = tonumber(ARGV[6]), tonumber(ARGV[7])
if most >= 0 and sums[tenant].items >= most then return 'too-many' end
if mostBytes >= 0 and sums.later.bytes + bytes + LATER_BYTES > mostBytes then return 'too-large' end
local at = ARGV[3]:sub(1, 1) == '+' and now + ARGV[3]:sub(2) or tonumber(ARGV[3])
fields[#fields + 1], fields[#fields + 2] = 'run', string.format('%.0f', at)
recordJob(base, name, fields, string.format('%.0f', now))
putLater(load, base, name, bytes, '0', at)
keepJob(base, name, math.max(at - now, 0) + wait + ARGV[5] + 86400000)
return 'recorded'
