-- note-wish.lua: note that a client wants a model to be loaded or unloaded. A repeated call, with
-- the same id, changes nothing.
--   KEYS.wish   hash; see wish.ts
--   ARGV.model
--   ARGV.wish   JSON
--   ARGV.id     of the wish, without spaces
--   Returns the number of the change; no less than Redis ms, so that it grows even if the hash was
--           lost
local present = redis.call('HGET', KEYS.wish, ARGV.model)
local noted, id = string.match(present or '', '^(%d+) (%S+) ')
if id == ARGV.id then return tonumber(noted) end
-- include ../pieces/time.lua
local number = math.max(now, tonumber(redis.call('HGET', KEYS.wish, '') or '0') + 1)
local text = string.format('%d', number)
redis.call('HSET', KEYS.wish, '', text, ARGV.model, text .. ' ' .. ARGV.id .. ' ' .. ARGV.wish)
return number
