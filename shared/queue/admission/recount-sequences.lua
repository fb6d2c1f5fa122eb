#!lua flags=allow-oom
-- recount-sequences.lua: repair the counts of sequences of a bucket (held.lua). Counts become wrong
-- only if a person changes keys by hand, or while processes of an earlier version, which do not
-- count, make and remove sequences.
--   KEYS.held       the counts
--   KEYS.turn       the process that counts again in this round holds it
--   ARGV.tag        of the bucket
--   ARGV.everyMs    ms from one round to the next round of any process
--   ARGV.models[]   models that may have sequences; those in the counts are looked at, too
--   Returns the number of counts that were wrong, or 0 if the last round is not so long ago
local held, tag = KEYS.held, ARGV.tag
if not redis.call('SET', KEYS.turn, '1', 'NX', 'PX', ARGV.everyMs) then return 0 end
local kind = redis.call('TYPE', held).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('UNLINK', held) end

-- Above this a round counts again only if the number of a model's sequences is wrong, because so
-- many take Redis a millisecond.
local OFTEN = 2000

local found, counts, models = redis.call('HGETALL', held), {}, {}
for i = 1, #found, 2 do
  counts[found[i]] = found[i + 1]
  local model = found[i]:match('^m:(.*)$')
  if model then models[model] = 0 end
end
for i = 1, #ARGV.models do models[ARGV.models[i]] = 0 end

local all, isWrong = 0, false
for model in pairs(models) do
  local length = redis.pcall('HLEN', 'seqs:' .. tag .. ':' .. model)
  if type(length) ~= 'number' then length = 0 end
  models[model], all = length, all + length
  if (tonumber(counts['m:' .. model]) or 0) ~= length then isWrong = true end
end
if not isWrong and all > OFTEN then return 0 end

local right, mended = {}, 0
for model, length in pairs(models) do
  if length > 0 then
    right['m:' .. model] = length
    for _, name in ipairs(redis.call('HKEYS', 'seqs:' .. tag .. ':' .. model)) do
      local field = 't:' .. name:match('^[^:]*')
      right[field] = (right[field] or 0) + 1
    end
  end
end
for field in pairs(counts) do
  if not right[field] then
    redis.call('HDEL', held, field)
    mended = mended + 1
  end
end
for field, count in pairs(right) do
  count = string.format('%d', count)
  if counts[field] ~= count then
    redis.call('HSET', held, field, count)
    mended = mended + 1
  end
end
return mended
