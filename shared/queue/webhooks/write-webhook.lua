#!lua
-- write-webhook.lua: make, change or remove a webhook, unless another call was faster.
--   KEYS.webhooks   of the tenant
--   KEYS.revisions
--   ARGV.tenant
--   ARGV.id
--   ARGV.from       the webhook that the caller has read, '' to make it
--   ARGV.to         the new webhook, '' to remove it
--   ARGV.most       most webhooks of a tenant
--   Returns {'written', revision, webhooks}   done, by this call or by an earlier one; all webhooks
--                                             that the tenant has now
--           {'conflict'}   the webhook is no longer the webhook read
--           {'full'}       the tenant has reached its number of webhooks
local key, id, to = KEYS.webhooks, ARGV.id, ARGV.to
local now = redis.call('HGET', key, id) or ''
if now ~= to then
  if now ~= ARGV.from then return {'conflict'} end
  if ARGV.from == '' and redis.call('HLEN', key) >= tonumber(ARGV.most) then return {'full'} end
  if to == '' then redis.call('HDEL', key, id) else redis.call('HSET', key, id, to) end
  redis.call('HINCRBY', KEYS.revisions, ARGV.tenant, 1)
end
return {'written', redis.call('HGET', KEYS.revisions, ARGV.tenant) or '0', redis.call('HVALS', key)}
