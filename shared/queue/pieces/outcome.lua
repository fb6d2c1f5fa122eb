-- outcome.lua: the record of a request: the facts, and how the request has ended. Every script that
-- ends or looks up a request includes this file.
--   key `out:{b}:m:r`  a hash from the admission on, for most requests. After the end of a brief
--                      request (load.lua) a string (records/requests.ts). The field `trace` of a
--                      sampled stream is the span of the admission, as a traceparent; `t` of an
--                      ended stream has the worker's timings (contract/timings.ts)
-- include load.lua
-- include job.lua
-- include parking.lua
local function briefOutcome(now, brief, kind, body)
  return TEXT.outcome{ended = now, at = brief.at, kind = kind, pin = brief.pin, gateway = brief.gateway, body = body}
end

-- Returns the facts of a request, or nil. `out` is the request's key.
--   kind, body   how the request has ended; nil until then
--   sealed       whether the log has the final record   ttl   that admission asked for, in ms
--   pin          of the lane                            entry  in the ready stream, if noted
--   parked       terms of a parked request (parking.lua)
--   wanted       until when a client surely wants the stream, if the stream ends without a reader
--   brief        as in load.lua, until the request has ended
--   job          the job that the request runs (job.lua), if any
local function recordOf(load, out)
  local found = redis.pcall('HMGET', out, 'digest', 'kind', 'body', 'sealed', 'ttl', 'pin', 'entry', 'parked',
    'wanted', 'job')
  if found.err then
    local kind, pin, body = redis.call('GET', out):match(PATTERN.outcome(kind, pin, body))
    return {kind = kind, body = body, pin = pin, ttl = 0}
  end
  if found[1] then
    return {kind = found[2] or nil, body = found[3] or '', sealed = found[4], ttl = tonumber(found[5] or '0'), pin = found[6],
      entry = found[7] or nil, parked = found[8] or nil, wanted = found[9] or nil, job = found[10] or nil}
  end
  local brief = readBrief(load, out:sub(5))
  if not brief or brief.ended == '1' then return nil end
  local isParked = brief.entry == '@'
  return {pin = brief.pin, ttl = 0, brief = brief, entry = not isParked and brief.entry ~= '' and brief.entry or nil,
    parked = isParked and brief.terms or nil}
end

-- Take the entry of a request out of a ready stream, unless a worker has it.
--   `out`    key of the record
--   Returns whether the entry is gone
local function withdrawEntry(out, pin, group, entry)
  local ready = readyOf(out, pin)
  local pending = redis.pcall('XPENDING', ready, group, entry, entry, 1)
  -- An error means that no worker has made the group yet, so none has the entry.
  if not pending.err and #pending > 0 then return false end
  local left = redis.call('XDEL', ready, entry)
  if left > 0 and isParking(ready) then
    noteUsed(ready, out:sub(5), 0)
    refill(ready, left)
  end
  return true
end

-- Returns the ms for which a worker has had a request, or nil if none has it. The record of a step
-- names no entry, so for a step the time stays unknown.
local function takenFor(out, record, group)
  if not record.entry then return nil end
  local pending = redis.pcall('XPENDING', readyOf(out, record.pin), group, record.entry, record.entry, 1)
  return not pending.err and pending[1] and pending[1][3] or nil
end

-- Note when a worker took the request of a job that ends while that worker has it.
local function noteTaken(out, record, group, now)
  local ms = takenFor(out, record, group)
  if ms then redis.call('HSETNX', out, 'began', string.format('%d', now - ms)) end
end

-- End a request from outside of a worker. `sealed` says that the log has the final record. A brief
-- request also leaves the queue at once, because the record, now a string, no longer names the
-- entry. For other requests withdraw.lua does that later.
--   ttl   ms for which the outcome is kept   now   Redis ms, as text
local function endFromOutside(load, out, record, group, kind, body, ttl, now, sealed)
  local brief = record.brief
  if brief then
    redis.call('SET', out, briefOutcome(now, brief, kind, body), 'PX', ttl)
    if brief.step ~= '0' then
      brief.ended = '1'
      writeBrief(load, out:sub(5), brief)
    elseif record.entry then
      withdrawEntry(out, record.pin, group, record.entry)
    end
  else
    local changes = {'kind', kind, 'body', body, 'ended', now}
    if sealed then changes[7], changes[8] = 'sealed', '1' end
    if record.job then noteTaken(out, record, group, now) end
    redis.call('HSET', out, unpack(changes))
    redis.call('PEXPIRE', out, ttl)
    if record.job then endJob(load, out:match('^out:({[^}]*}:[^:]*)'), record.job, kind, body, ttl, now) end
  end
  letGo(load, {out:sub(5)}, true, nil, function() return takenFor(out, record, group) end)
end
