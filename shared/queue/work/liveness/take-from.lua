#!lua flags=allow-oom
-- take-from.lua: take entries out of another worker's pending list. Takes nothing if the call
-- arrives late, because the worker may be back by then. The cost depends on the number of entries
-- taken, not on the lane.
--   KEYS.ready     the stream
--   ARGV.group
--   ARGV.consumer
--   ARGV.other     the other worker, whose grave in this lane is open
--   ARGV.most      most entries
--   ARGV.notAfter  Redis ms after which the call is too late
--   Returns {'more' 'empty' or 'late', entries, ids deleted from outside, deliveries}
--           'empty'     no entry is left there; the script removed the other worker's consumer
--           deliveries  for each entry, to how many workers Redis has given it, this one included
local ready, group, other = KEYS.ready, ARGV.group, ARGV.other
-- include ../../pieces/time.lua
if now > tonumber(ARGV.notAfter) then return {'late', {}, {}, {}} end
local ids, before = {}, {}
for _, row in ipairs(redis.call('XPENDING', ready, group, '-', '+', ARGV.most, other)) do
  ids[#ids + 1] = row[1]
  before[row[1]] = row[4]
end
local taken = {}
if #ids > 0 then taken = redis.call('XCLAIM', ready, group, ARGV.consumer, 0, unpack(ids)) end
local deleted, deliveries = {}, {}
for i, entry in ipairs(taken) do deliveries[i] = before[entry[1]] + 1 end
if #taken < #ids then
  -- Redis has dropped the deleted entries from the pending list.
  local found = {}
  for _, entry in ipairs(taken) do found[entry[1]] = true end
  for _, id in ipairs(ids) do if not found[id] then deleted[#deleted + 1] = id end end
end
if #redis.call('XPENDING', ready, group, '-', '+', 1, other) > 0 then return {'more', taken, deleted, deliveries} end
redis.call('XGROUP', 'DELCONSUMER', ready, group, other)
return {'empty', taken, deleted, deliveries}
