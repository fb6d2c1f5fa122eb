#!lua flags=allow-oom
-- cancel.lua: end a request from outside of a worker, after a cancellation, an expiry, or the loss
-- of the entry. Like give-outcome.lua, but a stream also gets its final record. A worker that holds
-- the request learns of the end at the next append or at the commit. The script also takes a parked
-- request out of the lane's queue.
--   KEYS[1] record (outcome.lua)   KEYS[2] log   KEYS[3] key of the counts (load.lua)
--   ARGV[1] outcome kind   ARGV[2] outcome body
--   ARGV[3] least TTL ms of outcome and log; admission may have asked for a longer TTL
--   ARGV[4] the rest of the final record: JSON members, without braces; '' if the request is no
--           stream
--   ARGV[5] '1' to leave a stream alone that has a record, else '0'
--   ARGV[6] group
--   Returns {'given', record, labels}  ended by this call; record is '' if the request is no
--                                      stream; labels: the labels of the request's job (job.lua),
--                                      '' for none
--           {'known', kind, body}   the request has an outcome already, perhaps from an earlier
--                                   copy of this call
--           {'sealed'}              the log has the final record; the outcome comes with the commit
--                                   of the worker that holds the request
--           {'begun'}               the log has a record, and ARGV[5] is '1'
--           {'unknown'}             there is no such request, or no longer
local load = KEYS[3]
-- include ../pieces/outcome.lua
local known = recordOf(load, KEYS[1])
if not known then return {'unknown'} end
if known.kind then return {'known', known.kind, known.body} end
if known.sealed then return {'sealed'} end
if ARGV[5] == '1' and redis.call('LLEN', KEYS[2]) > 0 then return {'begun'} end
if known.parked then withdrawParked(KEYS[1], known.pin, known.parked) end
local ttl = math.max(tonumber(ARGV[3]), known.ttl)
-- include ../pieces/time.lua
local record, labels = '', ''
if ARGV[4] ~= '' then
  record = string.format('{"index":%d,"choices":[],"final":true,', redis.call('LLEN', KEYS[2])) .. ARGV[4] .. '}'
  redis.call('RPUSH', KEYS[2], record)
  redis.call('PEXPIRE', KEYS[2], ttl)
  if known.job then labels = redis.call('HGET', jobKey(KEYS[1]:match('^out:({[^}]*}:[^:]*)'), known.job), 'labels') or '' end
end
local now = string.format('%.0f', now)
endFromOutside(load, KEYS[1], known, ARGV[6], ARGV[1], ARGV[2], ttl, now, record ~= '')
return {'given', record, labels}
