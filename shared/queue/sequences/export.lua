#!lua flags=allow-oom
-- export.lua: read where an idle sequence stands.
--   KEYS[1] sequence hash
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] name of the sequence
--   Returns {'exported', number, pin, version, checkpoint}
--                         number of its last step, counted from its START; version and checkpoint
--                         are '' where it goes on from its initial state
--           {'unknown'}   there is no such sequence, or it has idled out
--           {'busy'}      one of its steps is queued or runs
--           {'gone'}      its checkpoint is gone
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local facts = redis.call('HMGET', KEYS[1], 'next', 'entry', 'lapses', 'done', 'start', 'at', 'pin')
local busy = (facts[2] or '') ~= ''
if not facts[1] or not busy and tonumber(facts[3] or '0') <= now then return {'unknown'} end
if busy then return {'busy'} end
local at = facts[6] or ''
local checkpoint = at == '' and '' or redis.call('GET', 'state:' .. ARGV[1] .. ':' .. ARGV[2] .. '@' .. at)
if not checkpoint then return {'gone'} end
return {'exported', tonumber(facts[4] or '0') - tonumber(facts[5] or '1') + 1, facts[7], at, checkpoint}
