-- settle-wish.lua: note what became of a wish for a model, unless a client has wished something
-- else since. A wish that workers could not fulfil gives way to the last that they have fulfilled;
-- if there is none, the settings of the workers hold again. The number of the whole wish grows
-- then: a worker that has just started may have read the wish that is taken back.
--   KEYS.wish         hash; see wish.ts
--   ARGV.model
--   ARGV.number       of the change
--   ARGV.isFulfilled  '1' or ''
--   Returns 1; 0 if the model has another wish by now
local present = redis.call('HGET', KEYS.wish, ARGV.model)
if not present or present:sub(1, #ARGV.number + 1) ~= ARGV.number .. ' ' then return 0 end
local last = '/' .. ARGV.model
if ARGV.isFulfilled == '1' then
  redis.call('HSET', KEYS.wish, last, present)
  return 1
end
-- include ../pieces/time.lua
local number = math.max(now, tonumber(redis.call('HGET', KEYS.wish, '') or '0') + 1)
local fulfilled = redis.call('HGET', KEYS.wish, last)
if fulfilled then redis.call('HSET', KEYS.wish, ARGV.model, fulfilled)
else redis.call('HDEL', KEYS.wish, ARGV.model) end
redis.call('HSET', KEYS.wish, '', string.format('%d', number))
return 1
