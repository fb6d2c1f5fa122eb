#!lua flags=allow-oom
-- cancel.lua: end a request from outside of a worker, after a cancellation, an expiry, or the loss
-- of the entry. Like give-outcome.lua, but a stream also gets its final record. A worker that holds
-- the request learns of the end at the next append or at the commit. The script also takes a parked
-- request out of the lane's queue.
--   KEYS.record       of the request (outcome.lua)
--   KEYS.log
--   KEYS.load         the counts (load.lua)
--   ARGV.kind         of the outcome
--   ARGV.body         of the outcome
--   ARGV.ttl          least TTL ms of outcome and log; admission may have asked for a longer TTL
--   ARGV.members      the rest of the final record: JSON members, without braces; '' if the request
--                     is no stream
--   ARGV.unlessBegun  '1' to leave a stream alone that has a record, else '0'
--   ARGV.ends         '1' to end the sequence of a step as end.lua does, unless a later START has
--                     begun it anew, else '0'
--   ARGV.group
--   Returns {'given', record, labels, pin, ms}  ended by this call; record is '' if the request is
--                           no stream; labels: the labels of the request's job (job.lua), '' for
--                           none; pin of the lane; ms since the admission
--           {'known', kind, body}   the request has an outcome already, perhaps from an earlier
--                                   copy of this call
--           {'sealed'}              the log has the final record; the outcome comes with the commit
--                                   of the worker that holds the request
--           {'begun'}               the log has a record, and `unlessBegun` is '1'
--           {'unknown'}             there is no such request, or no longer
local load = KEYS.load
-- include ../pieces/outcome.lua
-- include ../pieces/past.lua
-- include ../pieces/sequence.lua
local known = recordOf(load, KEYS.record)
if not known then return {'unknown'} end
if known.kind then return {'known', known.kind, known.body} end
if known.sealed then return {'sealed'} end
if ARGV.unlessBegun == '1' and redis.call('LLEN', KEYS.log) > 0 then return {'begun'} end
if known.parked then withdrawParked(KEYS.record, known.pin, known.parked) end
local ttl = math.max(tonumber(ARGV.ttl), known.ttl)
-- include ../pieces/time.lua
local record, labels = '', ''
if ARGV.members ~= '' then
  record = string.format('{"index":%d,"choices":[],"final":true,', redis.call('LLEN', KEYS.log)) .. ARGV.members .. '}'
  redis.call('RPUSH', KEYS.log, record)
  redis.call('PEXPIRE', KEYS.log, ttl)
  if known.job then labels = redis.call('HGET', jobKey(KEYS.record:match('^out:({[^}]*}:[^:]*)'), known.job), 'labels') or '' end
end
if ARGV.ends == '1' then
  local base = KEYS.record:match('^out:({[^}]*}:[^:]*)')
  local step, name = (redis.call('HGET', openKey(load), KEYS.record:sub(5)) or ''):match(PATTERN.brief(step, sequence))
  local seq = name and name ~= '' and readableSequence(base, name)
  -- A sequence with a step that has not ended is busy.
  if seq and seq.ended == '0' and isBusy(seq) and tonumber(step) >= seq.start then
    seq.ended = DELETED
    noteSequence(base, name, seq)
  end
  writeSequences()
end
local at = known.brief and known.brief.at or redis.call('HGET', KEYS.record, 'at') or now
local ms = math.max(0, now - tonumber(at))
local now = string.format('%d', now)
endFromOutside(load, KEYS.record, known, ARGV.group, ARGV.kind, ARGV.body, ttl, now, record ~= '')
return {'given', record, labels, known.pin or '', ms}
