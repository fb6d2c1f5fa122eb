#!lua
-- note-replay.lua: note that a client asks for a replay of a delivery, within the limits of the
-- delivery and of its tenant. Each replay is work for the jobs process, and a message to a receiver
-- that may not have asked.
--   KEYS.delivery      begin-delivery.lua has its fields, besides these:
--                        replays  how many replays it has had
--                        asked    the name of the last request for a replay
--                        minute   the minute of the last replay
--                        lately   how many replays there were in that minute
--   KEYS.replays       of the tenant in this minute
--   ARGV.name          of this request, a new name for each
--   ARGV.most          most replays of a delivery
--   ARGV.mostLately    most of a delivery in a minute
--   ARGV.mostOfTenant  most of a tenant in a minute
--   Returns 'granted'   by this call, or by an earlier copy of it
--           'unknown'   there is no such delivery, or no longer
--           'spent'     the delivery has had all its replays
--           'often' 'tenant'   there were too many in this minute, of the delivery or of the tenant
local MINUTE = 60000
local state, replays, asked, minute, lately = unpack(redis.call('HMGET', KEYS.delivery, 'state', 'replays', 'asked', 'minute', 'lately'))
if not state then return 'unknown' end
if asked == ARGV.name then return 'granted' end
-- include ../pieces/time.lua
local now = string.format('%d', math.floor(time[1] / 60))
if minute ~= now then lately = '0' end
if tonumber(replays or '0') >= tonumber(ARGV.most) then return 'spent' end
if tonumber(lately or '0') >= tonumber(ARGV.mostLately) then return 'often' end
if tonumber(redis.call('GET', KEYS.replays) or '0') >= tonumber(ARGV.mostOfTenant) then return 'tenant' end
if redis.call('INCR', KEYS.replays) == 1 then redis.call('PEXPIRE', KEYS.replays, MINUTE) end
redis.call('HSET', KEYS.delivery, 'replays', (replays or 0) + 1, 'asked', ARGV.name, 'minute', now, 'lately', lately + 1)
return 'granted'
