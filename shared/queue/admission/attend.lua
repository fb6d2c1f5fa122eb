#!lua flags=allow-oom
-- attend.lua: note that a client wants a request's stream for a while longer. A worker ends a
-- stream that no client wants any more. A full Redis must not end streams with readers, hence
-- allow-oom: the field only changes.
--   KEYS[1] record (outcome.lua)   KEYS[2] the counts (load.lua)
--   ARGV[1] ms for which a client surely wants the stream from now on; '' to let it run to its end
--           even without a reader (detach)
--   Returns 'attended'    the script has noted that time
--           'background'  the stream runs to its end even without a reader, now or since before
--           'ended'       the request has an outcome
--           'unknown'     there is no such request, or no longer
local load = KEYS[2]
-- include ../pieces/outcome.lua
local known = recordOf(load, KEYS[1])
if not known then return 'unknown' end
if known.kind then return 'ended' end
if not known.wanted then return 'background' end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'wanted')
  return 'background'
end
-- include ../pieces/time.lua
redis.call('HSET', KEYS[1], 'wanted', string.format('%.0f', now + tonumber(ARGV[1])))
return 'attended'
