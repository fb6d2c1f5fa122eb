#!lua flags=allow-oom
-- commit-steps.lua: for each step of a batch, if this worker still owns its entry: write checkpoint and outcome, acknowledge, and move
-- the sequence's next waiting step to ready. Otherwise change nothing: the worker was a zombie.
--   KEYS[1] ready stream   KEYS[2] runs hash   KEYS[3] live zset   KEYS[4] dead stream
--   then per step:  outcome hash, sequence hash, checkpoint, waiting steps, and, where requests are streams, the log
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] idle ms   ARGV[4] dead limit   ARGV[5] ARGV[6] the oldest and the newest entry
--   then ten per step:  entry, sequence name, step number, START 0/1, outcome kind, outcome body, outcome TTL ms,
--                       action, checkpoint (for action put), reason to set aside ('' if not)
--   action  put   store the checkpoint
--           keep  the step had no effect; the sequence goes on from the checkpoint that it has
--           drop  the sequence goes on from its initial state
--           fail  the sequence is over: its state is gone, and steps without START are refused until one with START
--   Returns one word per step
--           'committed'   done
--           'superseded'  the request already had another outcome (expired, cancelled): acknowledged, no effect. A request whose
--                         record is gone had one too: nothing else lets it go before the commit. The action then is 'keep', or for
--                         a START 'fail', or 'drop' where requests are streams
--           'already'     not ours any more, but the request has an outcome (this very call may have made it, its reply lost)
--           'lost'        not ours any more, and no outcome yet: another worker has it; or ours, but its sequence knows nothing of
--                         it (deleted from outside): acknowledged, for it could never be committed
local ready, runs, live, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local group, consumer, idle = ARGV[1], ARGV[2], ARGV[3]
local count = (#ARGV - 6) / 10
local stride = (#KEYS - 4) / count
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lapses = string.format('%.0f', now + tonumber(idle))
now = string.format('%.0f', now)

-- Almost always nothing was suspected.
local suspected = redis.call('EXISTS', runs) == 1

-- One look for all; what this worker holds beside them may lie in between.
local most = 2 * count + 64
local owned = {}
local rows = redis.call('XPENDING', ready, group, ARGV[5], ARGV[6], most, consumer)
for i = 1, #rows do owned[rows[i][1]] = true end
local function isOwned(entry)
  return owned[entry] or #rows == most and #redis.call('XPENDING', ready, group, entry, entry, 1, consumer) == 1
end

local forgotten, idling = {}, {}

local function commit(out, seq, state, wait, log, entry, name, step, start, kind, body, ttl, action, checkpoint, reason)
  local record = redis.call('HMGET', out, 'kind', 'digest')
  local outcome = record[1]
  local facts = redis.call('HMGET', seq, 'entry', 'done', 'start', 'ended', 'at', 'next')
  local mine = isOwned(entry)
  if not mine or facts[1] ~= entry or tonumber(facts[2] or '0') + 1 ~= tonumber(step) then
    if mine then forgotten[#forgotten + 1] = entry end
    if outcome then return 'already' end
    return 'lost'
  end
  local said = 'committed'
  if outcome or not record[2] then
    said = 'superseded'
    -- A turn of a conversation that was cancelled has not happened; another model's steps have no state to go on from without their START.
    action = start ~= '1' and 'keep' or log and 'drop' or 'fail'
  else
    redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now)
    redis.call('PEXPIRE', out, ttl)
    if log then redis.call('PEXPIRE', log, ttl) end
    if reason ~= '' then
      redis.call('XADD', dead, 'MAXLEN', '~', ARGV[4], '*', 'sequence', name, 'step', step, 'reason', reason,
        'runs', (redis.call('HGET', runs, entry) or '0'):match('^%d+'), 'frame', redis.call('XRANGE', ready, entry, entry)[1][2][4])
    end
  end
  local from = facts[5] or ''
  if action == 'put' then
    from = entry
  elseif action == 'drop' then
    from = ''
  elseif action == 'fail' then
    from = '!'
    -- A START that was admitted after this step begins the sequence anew; else the id is free at once.
    if tonumber(facts[3] or '0') <= tonumber(step) then facts[4] = '1' end
  end
  forgotten[#forgotten + 1] = entry

  -- Every step that was admitted after this one waits, so only their numbers need to be compared.
  local waiting = tonumber(facts[6] or '0') > tonumber(step) and redis.call('LPOP', wait)
  if not waiting and facts[4] == '1' then
    redis.call('DEL', seq, state)
    redis.call('ZREM', live, name)
    return said
  end
  if action == 'drop' or action == 'fail' then redis.call('DEL', state) end
  if waiting then
    if action == 'put' then redis.call('SET', state, checkpoint) end
    local next = cmsgpack.unpack(waiting)
    redis.call('HSET', seq, 'done', step, 'at', from, 'worker', consumer, 'ended', facts[4] or '0', 'request', next[1]:match('^[^|]*'),
      'entry', redis.call('XADD', ready, '*', 'm', next[1] .. '|' .. from, 'b', next[2]))
  else
    if action == 'put' then
      redis.call('SET', state, checkpoint, 'PX', idle)
    elseif action == 'keep' then
      redis.call('PEXPIRE', state, idle)
    end
    redis.call('HSET', seq, 'done', step, 'at', from, 'worker', consumer, 'entry', '')
    redis.call('PEXPIRE', seq, idle)
    idling[#idling + 1] = lapses
    idling[#idling + 1] = name
  end
  return said
end

local said = {}
for i = 0, count - 1 do
  local k, a = 4 + i * stride, 6 + i * 10
  said[i + 1] = commit(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], stride == 5 and KEYS[k + 5],
    ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9],
    ARGV[a + 10])
end
if #forgotten > 0 then
  redis.call('XACK', ready, group, unpack(forgotten))
  redis.call('XDEL', ready, unpack(forgotten))
  if suspected then redis.call('HDEL', runs, unpack(forgotten)) end
end
if #idling > 0 then redis.call('ZADD', live, unpack(idling)) end
return said
