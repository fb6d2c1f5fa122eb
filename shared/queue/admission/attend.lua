#!lua flags=allow-oom
-- attend.lua: note that a client wants a request's stream for a while longer. A worker ends a
-- stream that no client wants any more. A full Redis must not end streams with readers, hence
-- allow-oom: the field only changes.
--   KEYS.record    of the request (outcome.lua)
--   KEYS.load      the counts (load.lua)
--   ARGV.attended  ms for which a client surely wants the stream from now on; '' to let it run to
--                  its end even without a reader (detach)
--   Returns 'attended'    the script has noted that time
--           'background'  the stream runs to its end even without a reader, now or since before
--           'ended'       the request has an outcome
--           'unknown'     there is no such request, or no longer
local load = KEYS.load
-- include ../pieces/outcome.lua
local known = recordOf(load, KEYS.record)
if not known then return 'unknown' end
if known.kind then return 'ended' end
if not known.wanted then return 'background' end
if ARGV.attended == '' then
  redis.call('HDEL', KEYS.record, 'wanted')
  return 'background'
end
-- include ../pieces/time.lua
redis.call('HSET', KEYS.record, 'wanted', string.format('%d', now + tonumber(ARGV.attended)))
return 'attended'
