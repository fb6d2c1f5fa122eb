-- settlement.lua: how a commit gives requests their outcomes. Reads the facts of all brief requests
-- (load.lua) of a call at once. Commit scripts include this file.
--   `apart`  '', or the suffix of a key with the outcome of a brief request: the transaction writes
--            a long body there before the script, so that the body does not pass through Lua. The
--            key is the record's key with `@<apart>` behind it; the script fills in the record's
--            two times
-- include ../../pieces/outcome.lua
-- include ../../pieces/kept.lua

-- A generation counts as it is, for the shares of tenants: without a usage in its log, with a token
-- for each record.
local UNCHARGED = {prompt = 0, choices = 1}

-- The endings of the requests of a call.
--   `names`  as in `open`   `now`  Redis ms, as text   `streams`  whether each request has a log
local function openEndings(load, names, now, streams)
  local open, left, kept = readOpen(load, names), {}, endings(now)
  local ended, removed, given, jobs = {}, {}, {}, {}

  -- Returns whether a request has no outcome yet, and whether it has an outcome (both are false for
  -- an unknown request); then the facts of a brief request, or nil and the `keep` (kept.lua) of any
  -- other request.
  function ended.look(name)
    if given[name] then return false, true end
    local brief = unpackBrief(open[name] or '')
    if brief then return brief.ended == '0', brief.ended == '1', brief end
    local found = redis.pcall('HMGET', 'out:' .. name, 'kind', 'digest', 'keep', 'job')
    if found.err then return false, true end
    jobs[name] = found[4] or nil
    return found[2] and not found[1], found[1] and true, nil, found[3]
  end

  -- Give a request its outcome. `brief` and `keep` are results of `look`; `owned` is the answer of
  -- owned.lua for its entry.
  function ended.give(name, brief, keep, owned, kind, body, ttl, apart)
    local out = 'out:' .. name
    given[name] = true
    if brief and apart ~= '' then
      redis.call('SETRANGE', out .. '@' .. apart, 0, HEAD.outcome{ended = now, at = brief.at})
      redis.call('RENAME', out .. '@' .. apart, out)
      return
    end
    if brief then
      redis.call('SET', out, briefOutcome(now, brief, kind, body), 'PX', ttl)
      return
    end
    local job = jobs[name]
    if job and not streams and owned ~= true then
      redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now, 'began', string.format('%d', now - owned))
    else
      redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now)
    end
    redis.call('PEXPIRE', out, ttl)
    if job then endJob(load, name:match('^({[^}]*}:[^:]*)'), job, kind, body, ttl, now) end
    kept.note(name, kind, #body, ttl, keep)
    if streams then redis.call('PEXPIRE', 'log:' .. name, keptFor(ttl, keep)) end
  end

  -- This call does not give the request an outcome.
  function ended.drop(name, apart)
    if apart ~= '' then removed[#removed + 1] = 'out:' .. name .. '@' .. apart end
  end

  -- The request's entry has left the queue, so the request no longer counts.
  --   `parking`  the ready stream of a lane with parked requests, or false
  function ended.leave(name, parking)
    left[#left + 1] = name
    if not parking or not streams then return end
    local prompt, completion = usedBy(name, UNCHARGED)
    noteUsed(parking, name, prompt + completion)
  end

  function ended.close()
    letGo(load, left, false, open)
    kept.write(load)
    for i = 1, #removed, 1000 do redis.call('UNLINK', unpack(removed, i, math.min(i + 999, #removed))) end
  end

  return ended
end
