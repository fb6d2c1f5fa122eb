#!lua flags=allow-oom
-- deployment.lua: write the settings that all processes of one deployment share, unless another
-- process was faster. The script has allow-oom because workers must start on a full Redis: only
-- workers make Redis emptier. The record takes a few bytes and is written once.
--   KEYS.deployment  a hash
--   ARGV.buckets     proposed
--   ARGV.secret      proposed
--   ARGV.format      of the keys
--   ARGV.auth        'required' if the process asks its clients for keys, else ''
--   Returns {buckets, secret, format, auth} as they are now
--           {nil, secret, nil, nil} if the keys have an earlier format; then the script writes
--           nothing
if redis.call('HEXISTS', KEYS.deployment, 'shards') == 1 then
  return redis.call('HMGET', KEYS.deployment, 'buckets', 'secret', 'format', 'auth')
end
redis.call('HSETNX', KEYS.deployment, 'buckets', ARGV.buckets)
redis.call('HSETNX', KEYS.deployment, 'secret', ARGV.secret)
redis.call('HSETNX', KEYS.deployment, 'format', ARGV.format)
if ARGV.auth ~= '' then redis.call('HSET', KEYS.deployment, 'auth', ARGV.auth) end
return redis.call('HMGET', KEYS.deployment, 'buckets', 'secret', 'format', 'auth')
