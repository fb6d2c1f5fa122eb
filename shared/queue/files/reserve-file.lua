#!lua
-- reserve-file.lua: begin a file, or count more bytes of it, and hold it for its writer.
--   KEYS.file         a hash:
--                       state    writing, kept or gone
--                       bytes    how many it has, or has so far
--                       created  Redis ms
--                       expires  Redis ms, or '' for never
--                       name     from its client
--                       purpose  batch or batch_output
--   KEYS.sums
--   KEYS.due          when upkeep looks at each file
--   ARGV.tenant
--   ARGV.id
--   ARGV.bytes        of the file so far
--   ARGV.leaseMs      ms until its writer counts as lost
--   ARGV.tenantBytes  most bytes of a tenant
--   ARGV.allBytes     most bytes of all
--   ARGV.tenantFiles  most files of a tenant; '' if an earlier call began the file
--   ARGV.allFiles     most files of all
--   Returns 'reserved', by this call or an earlier one
--           'tenant_bytes', 'all_bytes', 'tenant_files', 'all_files'   the limit in the way
--           'gone'   the file is not in the state `writing` any more
local sums, tenant, bytes = KEYS.sums, ARGV.tenant, tonumber(ARGV.bytes)
-- include ../pieces/time.lua
local state, had = unpack(redis.call('HMGET', KEYS.file, 'state', 'bytes'))
if state and state ~= 'writing' then return 'gone' end
if not state and ARGV.tenantFiles == '' then return 'gone' end

local function sum(field) return tonumber(redis.call('HGET', sums, field) or '0') end

local more = math.max(bytes - tonumber(had or '0'), 0)
if more > 0 then
  if sum('bytes:' .. tenant) + more > tonumber(ARGV.tenantBytes) then return 'tenant_bytes' end
  if sum('bytes') + more > tonumber(ARGV.allBytes) then return 'all_bytes' end
end
if not state then
  if sum('files:' .. tenant) >= tonumber(ARGV.tenantFiles) then return 'tenant_files' end
  if sum('files') >= tonumber(ARGV.allFiles) then return 'all_files' end
  redis.call('HINCRBY', sums, 'files:' .. tenant, 1)
  redis.call('HINCRBY', sums, 'files', 1)
end
if more > 0 then
  redis.call('HINCRBY', sums, 'bytes:' .. tenant, string.format('%d', more))
  redis.call('HINCRBY', sums, 'bytes', string.format('%d', more))
end
redis.call('HSET', KEYS.file, 'state', 'writing', 'bytes', string.format('%d', tonumber(had or '0') + more))
redis.call('ZADD', KEYS.due, string.format('%d', now + ARGV.leaseMs), tenant .. ':' .. ARGV.id)
return 'reserved'
