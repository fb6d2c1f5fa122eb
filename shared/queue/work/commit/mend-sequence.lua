#!lua flags=allow-oom
-- mend-sequence.lua: mend a sequence that counts as busy although its ready entry is gone (deleted
-- from outside). The step's body is lost, so the sequence fails. Its next waiting step becomes
-- ready, and the worker that reads the step refuses it.
--   KEYS.live      zset of the model's sequences
--   KEYS.waiting   the waiting steps of the sequence
--   KEYS.load      the counts (load.lua)
--   ARGV.sequence  its name
--   ARGV.base      tag of the bucket and model, `{tag}:model`
--   Also renews the checkpoints of a sound sequence if their TTL would end within a day, because
--   its work may wait for long.
--   Returns {'sound'}             nothing to mend
--           {'mended', request}   the sequence failed; the request whose step is lost, by its name,
--                                 needs an outcome
--           {'gone'}              no such sequence; the script removed its entry in the live zset
local load = KEYS.load
-- include ../../pieces/version.lua
-- include ../../pieces/parking.lua
-- include ../../pieces/past.lua
local name, base = ARGV.sequence, ARGV.base
local seq = readableSequence(base, name)
if not seq then
  writeSequences()
  redis.call('ZREM', KEYS.live, name)
  return {'gone'}
end
local checkpoints = versionKeys(base, name, seq.at, seq.kept)
local ready = 'ready:' .. base .. ':'
local function isQueued(lane)
  if seq.entry == PARKED then return redis.call('HEXISTS', laneKeyOf('parked', lane), seq.request) == 1 end
  return #redis.call('XRANGE', lane, seq.entry, seq.entry) == 1
end
if not isBusy(seq) or isQueued(ready .. seq.on) then
  local renewed = renewVersions(base, name, seq.at, seq.kept, seq.keptUntil, now + DAY)
  if renewed ~= seq.keptUntil then
    seq.keptUntil = renewed
    noteSequence(base, name, seq)
    writeSequences()
  end
  return {'sound'}
end
local lost = seq.request
if #checkpoints > 0 then redis.call('UNLINK', unpack(checkpoints)) end
seq.done, seq.at, seq.kept = seq.done + 1, '!', ''
if seq.start <= seq.done then seq.ended = FAILED end
local waiting = redis.call('LPOP', KEYS.waiting)
if waiting then
  local next = cmsgpack.unpack(waiting)
  seq.request, seq.on = LIST.waiting(next).facts:match(PATTERN.entry(request)), LIST.waiting(next).pin
  seq.entry = redis.call('XADD', ready .. seq.on, '*',
    'm', TEXT.entry{LIST.waiting(next).facts, from = '!'}, 'b', LIST.waiting(next).frame)
  noteSequence(base, name, seq)
else
  noteSequence(base, name, nil)
  notePast(base, name, seq.ended)
  writePast(now)
  redis.call('ZREM', KEYS.live, name)
end
writeSequences()
return {'mended', lost}
