-- time.lua: the time at which a script runs, the same for the whole script: `now` in Redis ms, and
-- `time` as TIME answers it. A piece that other scripts include; but for clock.lua, no script asks
-- for the time otherwise. The simulation (test/simulation) puts other pieces in place of both.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
