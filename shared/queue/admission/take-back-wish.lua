-- take-back-wish.lua: put back what was wished of a model before a wish that no worker could fulfil,
-- unless somebody has wished something else since. The number of the whole wish stays: workers do
-- already what is put back.
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
