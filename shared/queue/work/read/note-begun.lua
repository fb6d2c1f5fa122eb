#!lua flags=allow-oom
-- note-begun.lua: note that requests have begun, for jobs whose clients want that event, if this
-- worker still owns the entries. A request begins once, even if other workers have it later.
--   KEYS[1] the ready stream of a lane
--   ARGV[1] group   ARGV[2] consumer   ARGV[3] tag of the bucket and model, `{tag}:model`
--   then two per request:  entry, name of the request
--   Returns nothing
-- include ../../pieces/job.lua
-- include ../../pieces/time.lua
local now = string.format('%.0f', now)
for a = 4, #ARGV, 2 do
  local entry, out = ARGV[a], 'out:' .. ARGV[3] .. ':' .. ARGV[a + 1]
  local found = redis.pcall('HMGET', out, 'job', 'kind', 'told')
  local isOpen = not found.err and found[1] and not found[2] and not found[3]
  if isOpen and #redis.call('XPENDING', KEYS[1], ARGV[1], entry, entry, 1, ARGV[2]) > 0 then
    noteJobEvent(ARGV[3], found[1], 'running', '', now)
    redis.call('HSET', out, 'told', now)
  end
end
