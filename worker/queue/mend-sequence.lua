#!lua flags=allow-oom
-- mend-sequence.lua: a sequence that counts as busy although its ready entry is gone (deleted from outside): the step's body is lost, so
-- the sequence fails, and its next waiting step becomes ready to be refused in its turn.
--   KEYS[1] ready stream   KEYS[2] live zset   KEYS[3] sequence hash   KEYS[4] checkpoint   KEYS[5] waiting steps
--   ARGV[1] sequence name
--   Returns {'sound'}             nothing to mend
--           {'mended', request}   it failed; the request whose step was lost needs an outcome
--           {'gone'}              no such sequence; its entry in the live zset was dropped
local seq = redis.call('HMGET', KEYS[3], 'entry', 'next', 'done', 'start', 'request')
if not seq[2] then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return {'gone'}
end
if not seq[1] or seq[1] == '' or #redis.call('XRANGE', KEYS[1], seq[1], seq[1]) == 1 then return {'sound'} end
local lost = tonumber(seq[3] or '0') + 1
redis.call('DEL', KEYS[4])
redis.call('HSET', KEYS[3], 'done', lost, 'at', '!')
if tonumber(seq[4] or '0') <= lost then redis.call('HSET', KEYS[3], 'ended', '1') end
local waiting = redis.call('LPOP', KEYS[5])
if waiting then
  local next = cmsgpack.unpack(waiting)
  redis.call('HSET', KEYS[3], 'request', next[1]:match('^[^|]*'),
    'entry', redis.call('XADD', KEYS[1], '*', 'm', next[1] .. '|!', 'b', next[2]))
else
  redis.call('DEL', KEYS[3])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return {'mended', seq[5]}
