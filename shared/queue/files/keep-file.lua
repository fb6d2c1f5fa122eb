#!lua
-- keep-file.lua: finish a file, which is whole and visible from now on. Of two uploads under one
-- Idempotency-Key the first that ends makes the file, as long as that file is there.
--   KEYS.file     (reserve-file.lua)
--   KEYS.all      all files of the tenant
--   KEYS.due      when upkeep looks at each file
--   KEYS.upload[]  of the Idempotency-Key, if a client has given one: the claim of the first upload
--   ARGV.tenant
--   ARGV.id
--   ARGV.name
--   ARGV.purpose
--   ARGV.ttl      ms that the file lives, '' for ever
--   ARGV.claim    of this upload: JSON with the file's `id`; '' without a key
--   ARGV.claimMs  for how many ms Redis keeps the claim
--   Returns {'kept', created, expires}   by this call or an earlier one
--           {'gone'}   the file is not in the state `writing` any more
--           {'known', claim}   an earlier upload under the key has made another file
local key, id = KEYS.file, ARGV.id
local state, created, expires = unpack(redis.call('HMGET', key, 'state', 'created', 'expires'))
if state == 'kept' then return {'kept', created, expires} end
if state ~= 'writing' then return {'gone'} end
-- include ../pieces/time.lua
if KEYS.upload[1] then
  local claim = redis.call('GET', KEYS.upload[1]) or ''
  local other = key:sub(1, #key - #id) .. (claim:match('"id":"([^"]*)"') or '')
  local otherState, otherExpires = unpack(redis.call('HMGET', other, 'state', 'expires'))
  if otherState == 'kept' and (otherExpires == '' or tonumber(otherExpires) > now) then return {'known', claim} end
  redis.call('SET', KEYS.upload[1], ARGV.claim, 'PX', ARGV.claimMs)
end
created = string.format('%d', now)
expires = ARGV.ttl ~= '' and string.format('%d', now + ARGV.ttl) or ''
redis.call('HSET', key, 'state', 'kept', 'created', created, 'expires', expires, 'name', ARGV.name, 'purpose', ARGV.purpose)
redis.call('ZADD', KEYS.all, created, id)
if expires ~= '' then redis.call('ZADD', KEYS.due, expires, ARGV.tenant .. ':' .. id)
else redis.call('ZREM', KEYS.due, ARGV.tenant .. ':' .. id) end
return {'kept', created, expires}
