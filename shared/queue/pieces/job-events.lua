-- job-events.lua: the events of jobs for webhooks. An event carries the job's state of that moment,
-- because the job may run again or be gone before a jobs process sends the event. A piece of
-- job.lua. The record of a job with its own webhook has two more fields:
--   tell    the events that this webhook wants, with spaces between
--   target  the webhook's address, from the gateway (JSON)
-- The record of a request (outcome.lua) has a field `told` after the event that the request has
-- begun: the Redis ms of that event.
-- include events.lua

-- Returns the state of a job whose request has ended with this kind and body.
local function endedAs(kind, body)
  if kind == 'result' then return 'completed' end
  local code = body:match('^{"code":"([a-z_]*)"')
  return (code == 'cancelled' or code == 'expired') and code or 'failed'
end

-- Whether the job's own webhook, whose events are `tell`, or a webhook of the tenant wants this
-- event.
local function wantsJobEvent(base, name, event, tell)
  if tell and (' ' .. tell .. ' '):find(' ' .. event .. ' ', 1, true) then return true end
  return wantsEvent(base:match('^{[^}]*}'), name:match('^[^:]*'), event)
end

-- Note an event of a job, if a webhook wants the event. All events of jobs come from here.
--   `base`  `{tag}:model`   `name`  of the job, as in its key   `now`  Redis ms, as text
--   `state`  'running', a state in which the job ends, or 'scheduled' after a failure with a
--            further attempt; 'scheduled' has no event of its own
--   `body`  the outcome's body, if that is an error
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
  -- A job that ended while waiting has no request that shows the state.
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
  -- The worker that began the job could not note job.started. So note that event now, before the
  -- event of the end.
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
