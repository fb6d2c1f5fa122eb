#!lua
-- adopt.lua: let a sequence go on under another version of its model, or other files, which take
-- the states of those that it began with. Steps that were admitted before keep theirs.
--   KEYS[1] sequence hash
--   ARGV[1] pin that the sequence has, `version:digest`   ARGV[2] pin that it goes on under
--   Returns 'adopted'  done, by this call or by an earlier one
--           'other'    there is no such sequence, or it has another pin by now
local pin = redis.call('HGET', KEYS[1], 'pin')
if pin == ARGV[1] then redis.call('HSET', KEYS[1], 'pin', ARGV[2]) end
return (pin == ARGV[1] or pin == ARGV[2]) and 'adopted' or 'other'
