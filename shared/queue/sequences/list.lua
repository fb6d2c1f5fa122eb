#!lua flags=allow-oom,no-writes
-- list.lua: tell of some of a tenant's sequences of a model in a bucket, in no order. The cost of a
-- call depends on how many it looks at, which is bounded, and not on how many live. A sequence that
-- exists from the first call of a listing to the last is told at least once.
--   KEYS[1] sequences of the model and bucket (sequence.lua)
--   ARGV[1] tag of the bucket and model, `{tag}:model`   ARGV[2] tenant
--   ARGV[3] cursor; '0' to begin
--   ARGV[4] name of the sequence that was told last at this cursor; '' for none
--   ARGV[5] most sequences to tell of   ARGV[6] version of the model; '' for any
--   Returns {views, cursor, name}  views as view.lua has them; where to go on, which is cursor '0'
--                                  without a name where no more are left
-- include view.lua
local AT_ONCE, MOST_LOOKED = 100, 2000
local base, cursor, after, most, version = ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
-- include ../time.lua
local views, looked = {}, 0
repeat
  local reply = redis.call('HSCAN', KEYS[1], cursor, 'MATCH', ARGV[2] .. ':*', 'COUNT', AT_ONCE)
  local names, facts = {}, {}
  for i = 1, #reply[2], 2 do
    local name = reply[2][i]
    if after == '' or name > after then names[#names + 1] = name end
    facts[name] = reply[2][i + 1]
  end
  -- A page may end among the names that one cursor stands for. In this order, the last name that
  -- was told says where.
  table.sort(names)
  for i = 1, #names do
    local seq = unpackFacts(facts[names[i]])
    if isThere(seq, now) and (version == '' or seq.pin:match('^[^:]*') == version) then
      if #views == most then return {views, cursor, names[i - 1] or after} end
      views[#views + 1] = viewOf(base, names[i], seq)
    end
  end
  cursor, after, looked = reply[1], '', looked + AT_ONCE
until cursor == '0' or looked >= MOST_LOOKED
return {views, cursor, ''}
