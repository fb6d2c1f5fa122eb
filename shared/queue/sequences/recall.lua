#!lua flags=allow-oom,no-writes
-- recall.lua: what a change under an Idempotency-Key was answered, for who must look elsewhere
-- before making it.
--   KEYS[1] key of the record   ARGV[1] digest (once.lua)
--   Returns {}               it has not been made
--           {word, view}     the answer of the script that made it
--           {'mismatch'}     the Idempotency-Key was used for something else
-- include once.lua
return answeredBefore(KEYS[1], ARGV[1]) or {}
