#!lua
-- note-replay.lua: note that somebody asks for a delivery once more, unless that was asked for too
-- often: of this delivery, or by its tenant of all together. Each replay is work for the jobs
-- process, and a message to a receiver who may not have asked.
--   KEYS[1] the delivery (begin-delivery.lua); of it:
--     replays  how often it was asked for   asked  the name of the last request to do so
--     minute   the minute of the last one, and `lately`  how many there were in that minute
--   KEYS[2] replays of the tenant in this minute
--   ARGV[1] name of this request, a new one for each   ARGV[2] most replays of a delivery
--   ARGV[3] most of a delivery in a minute   ARGV[4] most of a tenant in a minute
--   Returns 'granted'   by this call, or by an earlier copy of it
--           'unknown'   there is no such delivery, or not any more
--           'spent'     it was replayed as often as it may be
--           'often' 'tenant'   there were too many in this minute, of the delivery or of the tenant
local MINUTE = 60000
local state, replays, asked, minute, lately = unpack(redis.call('HMGET', KEYS[1], 'state', 'replays', 'asked', 'minute', 'lately'))
if not state then return 'unknown' end
if asked == ARGV[1] then return 'granted' end
-- include ../time.lua
local now = string.format('%.0f', math.floor(time[1] / 60))
if minute ~= now then lately = '0' end
if tonumber(replays or '0') >= tonumber(ARGV[2]) then return 'spent' end
if tonumber(lately or '0') >= tonumber(ARGV[3]) then return 'often' end
if tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[4]) then return 'tenant' end
if redis.call('INCR', KEYS[2]) == 1 then redis.call('PEXPIRE', KEYS[2], MINUTE) end
redis.call('HSET', KEYS[1], 'replays', (replays or 0) + 1, 'asked', ARGV[1], 'minute', now, 'lately', lately + 1)
return 'granted'
