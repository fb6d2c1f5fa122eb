#!lua flags=allow-oom
-- reap-idle.lua: remove the idled-out sequences of a model in a bucket, the longest ago first, with
-- all keys of each, and file others again that have lived on. The cost grows with the number of
-- sequences whose time in the index has come, not of live sequences.
--   KEYS.live    zset (live.lua)
--   ARGV.base    tag of the bucket and model, `{tag}:model`
--   ARGV.most    most sequences of one call
--   ARGV.idleMs  ms for which the model's sequences are kept idle; '' if the caller does not know
--   Returns the number of sequences looked at; fewer than `most`: none is left
-- include pieces/version.lua
-- include pieces/sequence.lua
-- include pieces/live.lua
-- include pieces/past.lua
-- include pieces/events.lua
local live, base = KEYS.live, ARGV.base
-- include pieces/time.lua
local names = redis.call('ZRANGE', live, '-inf', string.format('%d', now), 'BYSCORE', 'LIMIT', 0, ARGV.most)
local gone, keys, refiled = {}, {}, {}
lookUpSequences(base, names)
for i = 1, #names do
  local name = names[i]
  local seq = readableSequence(base, name)
  if seq and not hasLapsed(seq, now) then
    refiled[#refiled + 1] = filedAt(seq)
    refiled[#refiled + 1] = name
  else
    gone[#gone + 1] = name
    if seq then
      noteSequence(base, name, nil)
      notePast(base, name, EXPIRED)
      noteExpired(base, name, seq, tonumber(ARGV.idleMs))
      for _, key in ipairs(versionKeys(base, name, seq.at, seq.kept)) do keys[#keys + 1] = key end
    end
  end
end
writeSequences()
writePast(now)
for i = 1, #keys, 1000 do redis.call('UNLINK', unpack(keys, i, math.min(i + 999, #keys))) end
if #gone > 0 then redis.call('ZREM', live, unpack(gone)) end
if #refiled > 0 then redis.call('ZADD', live, unpack(refiled)) end
return #names
