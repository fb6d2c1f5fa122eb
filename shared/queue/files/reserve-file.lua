#!lua
-- reserve-file.lua: begin a file, or count more bytes of it, and hold it for its writer.
--   KEYS[1] the file, a hash:
--     state    writing, kept or gone       bytes    how many it has, or has so far
--     created  Redis ms                    expires  Redis ms, or '' for never
--     name     from its client             purpose  batch or batch_output
--   KEYS[2] sums   KEYS[3] due
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] bytes so far   ARGV[4] ms until its writer counts as lost
--   ARGV[5] most bytes of a tenant   ARGV[6] of all   ARGV[7] most files of a tenant, '' if an
--   earlier call began the file   ARGV[8] of all
--   Returns 'reserved', by this call or an earlier one
--           'tenant_bytes', 'all_bytes', 'tenant_files', 'all_files'   the limit in the way
--           'gone'   the file is not in the state `writing` any more
local key, sums, due, tenant, id, bytes = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], tonumber(ARGV[3])
-- include ../pieces/time.lua
local state, had = unpack(redis.call('HMGET', key, 'state', 'bytes'))
if state and state ~= 'writing' then return 'gone' end
if not state and ARGV[7] == '' then return 'gone' end

local function sum(field) return tonumber(redis.call('HGET', sums, field) or '0') end

local more = math.max(bytes - tonumber(had or '0'), 0)
if more > 0 then
  if sum('bytes:' .. tenant) + more > tonumber(ARGV[5]) then return 'tenant_bytes' end
  if sum('bytes') + more > tonumber(ARGV[6]) then return 'all_bytes' end
end
if not state then
  if sum('files:' .. tenant) >= tonumber(ARGV[7]) then return 'tenant_files' end
  if sum('files') >= tonumber(ARGV[8]) then return 'all_files' end
  redis.call('HINCRBY', sums, 'files:' .. tenant, 1)
  redis.call('HINCRBY', sums, 'files', 1)
end
if more > 0 then
  redis.call('HINCRBY', sums, 'bytes:' .. tenant, string.format('%.0f', more))
  redis.call('HINCRBY', sums, 'bytes', string.format('%.0f', more))
end
redis.call('HSET', key, 'state', 'writing', 'bytes', string.format('%.0f', tonumber(had or '0') + more))
redis.call('ZADD', due, string.format('%.0f', now + ARGV[4]), tenant .. ':' .. id)
return 'reserved'
