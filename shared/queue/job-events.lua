-- job-events.lua: what webhooks are told of jobs. An event carries how the job stood when it
-- happened, since by the time at which it is sent the job may have been run once more, or be gone.
-- A piece of job.lua. Of a job whose webhook is its own, the record has two fields more:
--   tell    the events that this webhook wants, with spaces between
--   target  where they go, as the gateway has it (JSON)
-- The record of a request (outcome.lua) has a field more once it was told that the request has
-- begun: `told`, the Redis ms of that.
-- include events.lua

-- The state of a job whose request has ended so.
local function endedAs(kind, body)
  if kind == 'result' then return 'completed' end
  local code = body:match('^{"code":"([a-z_]*)"')
  return (code == 'cancelled' or code == 'expired') and code or 'failed'
end

-- Whether a webhook of the job's own, whose events are `tell`, or of its tenant wants this event.
local function wantsJobEvent(base, name, event, tell)
  if tell and (' ' .. tell .. ' '):find(' ' .. event .. ' ', 1, true) then return true end
  return wantsEvent(base:match('^{[^}]*}'), name:match('^[^:]*'), event)
end

-- Note that a job stands so from now on, if somebody wants to be told. This is the one place from
-- which all events of jobs come.
--   `base`  `{tag}:model`   `name`  of the job, as in its key   `now`  Redis ms, as text
--   `state`  'running', or one in which it ends, or 'scheduled', where it has failed and is tried
--     once more, of which nobody is told by itself
--   `body`  the outcome's, where that is an error
local function noteJobEvent(base, name, state, body, now)
  local event = state == 'running' and 'job.started' or 'job.' .. state
  local key = 'job:' .. base .. ':' .. name
  local tell = redis.call('HGET', key, 'tell')
  local isWanted = wantsJobEvent(base, name, event, tell)
  local isLate = state ~= 'running' and wantsJobEvent(base, name, 'job.started', tell)
  if not isWanted and not isLate then return end
  local job = redis.call('HMGET', key, 'type', 'options', 'at', 'made', 'request', 'target',
    'schedule', 'tick', 'run', 'wait', 'ended')
  if not job[5] then return end
  -- One that has ended while it waited for its time has no request that says how.
  local waited = job[5] == '' or job[11]
  local request = waited and {} or redis.call('HMGET', 'out:' .. base .. ':' .. job[5], 'at', 'began', 'told', 'pin', 'keep')
  local facts = {
    model = base:match(':(.*)$'), job = name, type = job[1], options = job[2], at = job[3], made = job[4], request = job[5],
    queued = request[1] or not waited and job[3] or nil, began = request[2] or request[3] or nil, pin = request[4] or nil, keep = request[5] or nil,
    schedule = job[7] or nil, tick = job[8] or nil, run = job[9] or nil, wait = job[10] or nil,
  }
  local function note(what, how)
    facts.state = how
    facts.own = job[6] and tell and (' ' .. tell .. ' '):find(' ' .. what .. ' ', 1, true) and job[6] or nil
    noteEvent(base:match('^{[^}]*}'), name:match('^[^:]*'), what, facts)
  end
  -- The worker that began it could not say so, and was the one to end it: it is told at the latest
  -- now.
  if isLate and request[2] and not request[3] then note('job.started', 'running') end
  if not isWanted then return end
  if state == 'running' then
    facts.began = now
  else
    facts.ended = now
    if state ~= 'completed' then facts.failure = body end
  end
  note(event, state)
end
