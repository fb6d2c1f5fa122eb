#!lua
-- write-webhook.lua: make, change or remove a webhook, unless another call was faster.
--   KEYS[1] webhooks of the tenant   KEYS[2] revisions
--   ARGV[1] tenant   ARGV[2] id   ARGV[3] the webhook that the caller has read, '' to make it
--   ARGV[4] the new webhook, '' to remove it   ARGV[5] most webhooks of a tenant
--   Returns {'written', revision, webhooks}   done, by this call or by an earlier one; all webhooks
--                                             that the tenant has now
--           {'conflict'}   the webhook is no longer the webhook read
--           {'full'}       the tenant has reached its number of webhooks
local key, id, from, to = KEYS[1], ARGV[2], ARGV[3], ARGV[4]
local now = redis.call('HGET', key, id) or ''
if now ~= to then
  if now ~= from then return {'conflict'} end
  if from == '' and redis.call('HLEN', key) >= tonumber(ARGV[5]) then return {'full'} end
  if to == '' then redis.call('HDEL', key, id) else redis.call('HSET', key, id, to) end
  redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
end
return {'written', redis.call('HGET', KEYS[2], ARGV[1]) or '0', redis.call('HVALS', key)}
