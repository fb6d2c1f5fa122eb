#!lua flags=allow-oom
-- note-begun.lua: note that requests have begun, for jobs whose clients want that event, if this
-- worker still owns the entries. A request begins once, even if other workers have it later.
--   KEYS.ready       the stream of a lane
--   ARGV.group
--   ARGV.consumer
--   ARGV.base        tag of the bucket and model, `{tag}:model`
--   ARGV.requests[]
--     .entry
--     .request       its name
--   Returns nothing
-- include ../../pieces/job.lua
-- include ../../pieces/time.lua
local now = string.format('%d', now)
for i = 1, #ARGV.requests do
  local entry, out = ARGV.requests[i].entry, 'out:' .. ARGV.base .. ':' .. ARGV.requests[i].request
  local found = redis.pcall('HMGET', out, 'job', 'kind', 'told')
  local isOpen = not found.err and found[1] and not found[2] and not found[3]
  if isOpen and #redis.call('XPENDING', KEYS.ready, ARGV.group, entry, entry, 1, ARGV.consumer) > 0 then
    noteJobEvent(ARGV.base, found[1], 'running', '', now)
    redis.call('HSET', out, 'told', now)
  end
end
