-- admit.lua: number each request's step and queue it, unless it is known, refused, or too much. Each request is answered for itself.
--   KEYS[1] ready stream   KEYS[2] live zset
--   then per request:  outcome hash, and for a step of a sequence also: sequence hash, checkpoint, waiting steps
--   ARGV[1] gateway   ARGV[2] ready limit   ARGV[3] waiting limit   ARGV[4] live sequence limit
--   then eight per request: request, frame, digest of what was asked, outcome TTL ms,
--                           deadline (ms from now), ms for which somebody surely wants the stream
--                           (see attend.lua); 0: it runs for whoever reads,
--                           sequence name ('': none), START 1 + END 2
--   A call may arrive a second time, even after its own retry: a link can stall, and hand on what it
--   held once the caller has long reconnected. So the record is looked for whoever asks, and only a
--   request that has none is admitted.
--   Returns one answer per request
--           'admitted'               queued now
--           {'known', kind, body}    admitted before; kind is '' while it has no outcome
--           'mismatch'               the request's key was used for something else
--           'queue-full' 'start-required' 'backlog-full' 'too-many-sequences'   refused, nothing written
local ready, live = KEYS[1], KEYS[2]
local gateway, readyLimit, waitLimit, liveLimit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local length = redis.call('XLEN', ready)
local sequences -- counted when the first new one asks
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local at = string.format('%.0f', now)
local busy = {}

-- Kept for a day past the deadline even if every process dies: a stream's deadline is that of its
-- first token, and its log lives as long as this record. The commit sets the TTL that counts.
local function record(out, digest, ttl, deadline, attended, entry)
  local fields = {'digest', digest, 'at', at, 'ttl', ttl}
  if attended > 0 then
    fields[7], fields[8] = 'wanted', string.format('%.0f', now + attended)
  end
  if entry then
    fields[#fields + 1] = 'entry'
    fields[#fields + 1] = entry
  end
  redis.call('HSET', out, unpack(fields))
  redis.call('PEXPIRE', out, tonumber(ttl) + deadline + 86400000)
end

local function admit(out, sequence, state, wait, request, frame, digest, ttl, deadline, attended, name, flags)
  attended = tonumber(attended)
  local known = redis.call('HMGET', out, 'digest', 'kind', 'body')
  if known[1] then
    if known[1] ~= digest then return 'mismatch' end
    -- An earlier try may have been a stream that somebody read.
    if not known[2] and attended == 0 then redis.call('HDEL', out, 'wanted') end
    return {'known', known[2] or '', known[3] or ''}
  end

  local start = flags == '1' or flags == '3'
  local seq, running
  if sequence then
    seq = redis.call('HMGET', sequence, 'next', 'entry', 'ended', 'at')
    running = seq[2] and seq[2] ~= ''
    if not start and (not seq[1] or seq[3] == '1') then return 'start-required' end
  end
  if length >= readyLimit then return 'queue-full' end
  if sequence then
    if running and redis.call('LLEN', wait) >= waitLimit then return 'backlog-full' end
    if not seq[1] then
      sequences = sequences or redis.call('ZCARD', live)
      if sequences >= liveLimit then return 'too-many-sequences' end
      sequences = sequences + 1
    end
  end

  local left = tonumber(deadline)
  deadline = string.format('%.0f', now + left)
  if not sequence then
    local entry = redis.call('XADD', ready, '*', 'm', table.concat({request, '', '0', '0', deadline, gateway, ttl, ''}, '|'), 'b', frame)
    -- With it the request can be taken out of the queue; a step of a sequence cannot, others wait
    -- for it.
    record(out, digest, ttl, left, attended, entry)
    length = length + 1
    return 'admitted'
  end
  record(out, digest, ttl, left, attended)

  local step = string.format('%.0f', tonumber(seq[1] or '0') + 1)
  local ended = (flags == '2' or flags == '3') and '1' or '0'
  local facts = table.concat({request, name, step, flags, deadline, gateway, ttl}, '|')
  local changes = {'next', step, 'ended', ended}
  if start then
    changes[5], changes[6] = 'start', step
  end
  if running then
    redis.call('RPUSH', wait, cmsgpack.pack({facts, frame}))
  else
    -- One lifetime: no key of a sequence with queued work may expire, or a waiting step would find a silent zero state.
    if seq[1] then
      redis.call('PERSIST', sequence)
      redis.call('PERSIST', state)
    end
    busy[#busy + 1] = '+inf'
    busy[#busy + 1] = name
    local entry = redis.call('XADD', ready, '*', 'm', facts .. '|' .. (seq[4] or ''), 'b', frame)
    length = length + 1
    local n = #changes
    changes[n + 1], changes[n + 2], changes[n + 3], changes[n + 4] = 'entry', entry, 'request', request
  end
  redis.call('HSET', sequence, unpack(changes))
  return 'admitted'
end

local said = {}
local k, a = 2, 4
while a < #ARGV do
  local isStep = ARGV[a + 7] ~= ''
  said[#said + 1] = admit(KEYS[k + 1], isStep and KEYS[k + 2], isStep and KEYS[k + 3], isStep and KEYS[k + 4],
    ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8])
  k, a = k + (isStep and 4 or 1), a + 8
end
if #busy > 0 then redis.call('ZADD', live, unpack(busy)) end
return said
