#!lua flags=allow-oom
-- attend.lua: say that somebody wants a request's stream for a while longer. A worker ends a stream
-- that nobody wants any more. A full Redis must not end the streams that somebody reads, hence
-- allow-oom: the field only changes.
--   KEYS[1] record (outcome.lua)   KEYS[2] what is counted (load.lua)
--   ARGV[1] ms for which it is surely wanted from now on; '' to let it run to its end whether or
--           not anybody reads it (detach)
--   Returns 'attended'    it is wanted until then
--           'background'  it runs whether or not anybody reads it, from now on or since before
--           'ended'       it has an outcome
--           'unknown'     there is no such request, or not any more
local load = KEYS[2]
-- include ../outcome.lua
local known = recordOf(load, KEYS[1])
if not known then return 'unknown' end
if known.kind then return 'ended' end
if not known.wanted then return 'background' end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'wanted')
  return 'background'
end
-- include ../time.lua
redis.call('HSET', KEYS[1], 'wanted', string.format('%.0f', now + tonumber(ARGV[1])))
return 'attended'
