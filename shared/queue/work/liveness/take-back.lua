#!lua flags=allow-oom
-- take-back.lua: give a worker entries again that it has given up without an outcome, for example
-- when it was cut off. The worker continues only with entries that it still owns.
--   KEYS[1] ready stream
--   ARGV[1] group   ARGV[2] consumer   ARGV[3..] entries
--   Returns the entries that the worker still owns
local taken = {}
for i = 3, #ARGV do
  if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2]) == 1 then
    local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i])[1]
    if entry then taken[#taken + 1] = entry end
  end
end
return taken
