#!lua flags=no-writes,allow-oom
-- still-open.lua: whether requests that a worker runs on with still have to end. A client may have
-- cancelled such a request between two of its runs, or its deadline may have passed.
--   KEYS.load       the counts (load.lua)
--   KEYS.records[]  (outcome.lua)
--   Returns a word for each record
--           'open'      the request runs on
--           'ended'     it has an outcome, or its record is gone
--           'unwanted'  it is a stream, and no client wants it any more
local load = KEYS.load
-- include ../../pieces/outcome.lua
-- include ../../pieces/time.lua
local said = {}
for i = 1, #KEYS.records do
  local record = recordOf(load, KEYS.records[i])
  said[i] = 'open'
  if not record or record.kind then
    said[i] = 'ended'
  elseif record.wanted and tonumber(record.wanted) < now then
    said[i] = 'unwanted'
  end
end
return said
