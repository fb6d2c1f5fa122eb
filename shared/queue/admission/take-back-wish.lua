-- take-back-wish.lua: take back a wish for a model that no worker could fulfil, in favour of the
-- wish before, unless a client has wished something else since. The number of the whole wish stays:
-- workers already do what the wish before says.
--   KEYS.wish    hash; see wish.ts
--   ARGV.model
--   ARGV.number  of the change
--   ARGV.before  what the hash had about the model before, or ''
--   Returns 1 if the wish was put back; else 0
local present = redis.call('HGET', KEYS.wish, ARGV.model)
if not present or present:sub(1, #ARGV.number + 1) ~= ARGV.number .. ' ' then return 0 end
if ARGV.before == '' then redis.call('HDEL', KEYS.wish, ARGV.model)
else redis.call('HSET', KEYS.wish, ARGV.model, ARGV.before) end
return 1
