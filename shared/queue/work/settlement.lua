-- settlement.lua: how a commit gives requests their outcomes. What is known of brief requests
-- (load.lua) is read for all of a call at once. A piece that commit scripts include.
--   `apart`  '', or names where the outcome of a brief request has been written ahead of the script
--            in its transaction, so that a long body does not pass through Lua: the record's key
--            has `@<apart>` behind it there, and its two times are still to come
-- include ../outcome.lua
-- include ../kept.lua

-- The requests of a call, and what of them has left the queue.
--   `names`  as in `open`   `now`  Redis ms, as text   `streams`  whether each has a log
local function openEndings(load, names, now, streams)
  local open, left, kept = readOpen(load, names), {}, endings(now)
  local ended, removed, given, jobs = {}, {}, {}, {}

  -- Returns whether a request has no outcome yet, whether it has one (both are false where nothing
  -- is known of it), what is known of it if it is brief, and its `keep` (kept.lua) if it is not.
  function ended.look(name)
    if given[name] then return false, true end
    local brief = parseBrief(open[name])
    if brief then return brief.ended == '0', brief.ended == '1', brief end
    local found = redis.pcall('HMGET', 'out:' .. name, 'kind', 'digest', 'keep', 'job')
    if found.err then return false, true end
    jobs[name] = found[4] or nil
    return found[2] and not found[1], found[1] and true, nil, found[3]
  end

  -- Give a request its outcome. `brief` and `keep` are as `look` said; `owned` is what owned.lua
  -- says of its entry.
  function ended.give(name, brief, keep, owned, kind, body, ttl, apart)
    local out = 'out:' .. name
    given[name] = true
    if brief and apart ~= '' then
      redis.call('SETRANGE', out .. '@' .. apart, 0, now .. '|' .. brief.at)
      redis.call('RENAME', out .. '@' .. apart, out)
      return
    end
    if brief then
      redis.call('SET', out, briefOutcome(now, brief, kind) .. body, 'PX', ttl)
      return
    end
    local job = jobs[name]
    if job and not streams and owned ~= true then
      redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now, 'began', string.format('%.0f', now - owned))
    else
      redis.call('HSET', out, 'kind', kind, 'body', body, 'ended', now)
    end
    redis.call('PEXPIRE', out, ttl)
    if job then endJob(load, name:match('^({[^}]*}:[^:]*)'), job, kind, body, ttl, now) end
    kept.note(name, kind, #body, ttl, keep)
    if streams then redis.call('PEXPIRE', 'log:' .. name, keptFor(ttl, keep)) end
  end

  -- The outcome of a request is not given by this call.
  function ended.drop(name, apart)
    if apart ~= '' then removed[#removed + 1] = 'out:' .. name .. '@' .. apart end
  end

  -- The request's entry has left the queue, so the request is counted no longer.
  function ended.leave(name) left[#left + 1] = name end

  function ended.close()
    letGo(load, left, false, open)
    kept.write(load)
    for i = 1, #removed, 1000 do redis.call('UNLINK', unpack(removed, i, math.min(i + 999, #removed))) end
  end

  return ended
end
