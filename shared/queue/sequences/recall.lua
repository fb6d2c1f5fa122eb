#!lua flags=allow-oom,no-writes
-- recall.lua: the answer to a change under an Idempotency-Key, for a caller that must look
-- elsewhere before it makes the change.
--   KEYS.record  of the change (once.lua)
--   ARGV.digest  of the client's order
--   Returns {}               no script has made the change
--           {word, view}     the answer of the script that made it
--           {'mismatch'}     the Idempotency-Key belongs to another change
-- include once.lua
return answeredBefore(KEYS.record, ARGV.digest) or {}
