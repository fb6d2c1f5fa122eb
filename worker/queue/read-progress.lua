#!lua flags=no-writes,allow-oom
-- read-progress.lua: how far a stream has come. Its records come as one string: a worker may take over a hundred streams of a thousand records at
-- once, and taking each record out of the reply by itself would keep the thread that renews its leases busy.
--   KEYS[1] log   KEYS[2] outcome hash
--   Returns {records, each on a line; '' for none, digest, kind, sealed, wanted}; nil where the hash has no such field
local records = redis.call('LRANGE', KEYS[1], 0, -1)
return { table.concat(records, '\n'), unpack(redis.call('HMGET', KEYS[2], 'digest', 'kind', 'sealed', 'wanted')) }
