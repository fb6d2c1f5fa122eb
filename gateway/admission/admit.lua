-- admit.lua: number a request's step and queue it, unless it is known, refused, or too much.
--   KEYS[1] ready stream   KEYS[2] outcome hash   KEYS[3] live zset
--   KEYS[4] sequence hash  KEYS[5] checkpoint     KEYS[6] waiting steps        (sequence models only)
--   ARGV[1] request   ARGV[2] frame   ARGV[3] digest of what was asked   ARGV[4] outcome TTL ms   ARGV[5] deadline, ms from now
--   ARGV[6] gateway   ARGV[7] ready limit   ARGV[8] ms for which somebody surely wants the stream (see attend.lua); 0: it runs for whoever reads
--   ARGV[9] sequence name   ARGV[10] START 0/1   ARGV[11] END 0/1   ARGV[12] waiting limit   ARGV[13] live sequence limit
--   Returns {'admitted'}                      queued now
--           {'known', kind, body}             admitted before; kind is '' while it has no outcome
--           {'mismatch'}                      the request's key was used for something else
--           {'queue-full'} {'start-required'} {'backlog-full'} {'too-many-sequences'}   refused, nothing written
local known = redis.call('HMGET', KEYS[2], 'digest', 'kind', 'body')
if known[1] then
  if known[1] ~= ARGV[3] then return {'mismatch'} end
  -- An earlier try may have been a stream that somebody read.
  if not known[2] and tonumber(ARGV[8]) == 0 then redis.call('HDEL', KEYS[2], 'wanted') end
  return {'known', known[2] or '', known[3] or ''}
end

local sequence, start = KEYS[4], ARGV[10] == '1'
local seq
if sequence then
  seq = redis.call('HMGET', sequence, 'next', 'entry', 'ended', 'at')
  if not start and (not seq[1] or seq[3] == '1') then return {'start-required'} end
end
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[7]) then return {'queue-full'} end
if sequence then
  if seq[2] and redis.call('LLEN', KEYS[6]) >= tonumber(ARGV[12]) then return {'backlog-full'} end
  if not seq[1] and redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[13]) then return {'too-many-sequences'} end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = string.format('%.0f', now + tonumber(ARGV[5]))
local record = {'digest', ARGV[3], 'at', string.format('%.0f', now), 'ttl', ARGV[4]}
if tonumber(ARGV[8]) > 0 then
  record[7], record[8] = 'wanted', string.format('%.0f', now + tonumber(ARGV[8]))
end
-- Kept well past the deadline even if every process dies; the commit sets the TTL that counts.
redis.call('HSET', KEYS[2], unpack(record))
redis.call('PEXPIRE', KEYS[2], tonumber(ARGV[4]) + tonumber(ARGV[5]) + 3600000)

if not sequence then
  redis.call('XADD', KEYS[1], '*', 'm', table.concat({ARGV[1], '', '0', '0', deadline, ARGV[6], ARGV[4], ''}, '|'), 'b', ARGV[2])
  return {'admitted'}
end

local step = string.format('%.0f', tonumber(seq[1] or '0') + 1)
local flags = (start and 1 or 0) + (ARGV[11] == '1' and 2 or 0)
local changes = {'next', step, 'ended', ARGV[11]}
if start then
  changes[5], changes[6] = 'start', step
end
-- One lifetime: no key of a sequence with queued work may expire, or a waiting step would find a silent zero state.
redis.call('PERSIST', sequence)
redis.call('PERSIST', KEYS[5])
redis.call('ZADD', KEYS[3], '+inf', ARGV[9])
local facts = table.concat({ARGV[1], ARGV[9], step, flags, deadline, ARGV[6], ARGV[4]}, '|')
if seq[2] then
  redis.call('RPUSH', KEYS[6], cmsgpack.pack({facts, ARGV[2]}))
  redis.call('HSET', sequence, unpack(changes))
else
  local entry = redis.call('XADD', KEYS[1], '*', 'm', facts .. '|' .. (seq[4] or ''), 'b', ARGV[2])
  redis.call('HSET', sequence, 'entry', entry, 'request', ARGV[1], unpack(changes))
end
return {'admitted'}
