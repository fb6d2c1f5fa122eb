-- note-wish.lua: note that a client wants a model to be loaded or unloaded.
--   KEYS.wish   hash; see wish.ts
--   ARGV.model
--   ARGV.wish   JSON
--   Returns {number, before}
--     number: of the change; no less than Redis ms, so that it grows even if the hash was lost
--     before: what the hash had about the model, or ''
-- include ../pieces/time.lua
local number = math.max(now, tonumber(redis.call('HGET', KEYS.wish, '') or '0') + 1)
local before = redis.call('HGET', KEYS.wish, ARGV.model) or ''
redis.call('HSET', KEYS.wish, '', string.format('%d', number), ARGV.model,
  string.format('%d', number) .. ' ' .. ARGV.wish)
return {number, before}
