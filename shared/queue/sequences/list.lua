#!lua flags=allow-oom,no-writes
-- list.lua: describe some of a tenant's sequences of a model in a bucket, in no order. The cost of
-- a call depends on how many sequences it looks at, which is bounded, and not on how many live. A
-- sequence that exists from the first call of a listing to the last appears at least once.
--   KEYS.sequences  of the model and bucket (sequence.lua)
--   ARGV.base       tag of the bucket and model, `{tag}:model`
--   ARGV.tenant
--   ARGV.cursor     '0' to begin
--   ARGV.after      last name of the answers so far at this cursor; '' for none
--   ARGV.most       most sequences to describe
--   ARGV.version    of the model; '' for any
--   ARGV.state      'live', 'busy' or 'hibernating' (view.ts); '' for any
--   ARGV.beginnings of names, with a space between them; '' for any
--   Returns {views, cursor, name}  views (view.lua); then `cursor` and `after` of the next call, or
--                                  cursor '0' without a name if no more are left
-- include view.lua
local AT_ONCE, MOST_LOOKED = 100, 2000
local cursor, after, most = ARGV.cursor, ARGV.after, tonumber(ARGV.most)
-- include ../pieces/time.lua
local views, looked = {}, 0
-- Whether the listing is about a name.
local function isMeant(name)
  if after ~= '' and name <= after then return false end
  if ARGV.beginnings == '' then return true end
  for beginning in ARGV.beginnings:gmatch('%S+') do
    if name:sub(1, #beginning) == beginning then return true end
  end
  return false
end
repeat
  local reply = redis.call('HSCAN', KEYS.sequences, cursor, 'MATCH', ARGV.tenant .. ':*', 'COUNT', AT_ONCE)
  local names, facts = {}, {}
  for i = 1, #reply[2], 2 do
    local name = reply[2][i]
    if isMeant(name) then names[#names + 1] = name end
    facts[name] = reply[2][i + 1]
  end
  -- A page may end among the names of a single cursor. In this order, the last name of the page is
  -- the place to continue.
  table.sort(names)
  for i = 1, #names do
    local seq = unpackSequence(facts[names[i]]) or error(UNREADABLE)
    if isThere(seq, now) and (ARGV.version == '' or seq.pin:match('^[^:]*') == ARGV.version) then
      if #views == most then return {views, cursor, names[i - 1] or after} end
      local view = viewOf(ARGV.base, names[i], seq)
      if ARGV.state == '' or LIST.sequenceView(view).state == ARGV.state then views[#views + 1] = view end
    end
  end
  cursor, after, looked = reply[1], '', looked + AT_ONCE
until cursor == '0' or looked >= MOST_LOOKED
return {views, cursor, ''}
