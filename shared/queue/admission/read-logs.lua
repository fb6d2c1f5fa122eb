#!lua flags=no-writes,allow-oom
-- read-logs.lua: read the logs of several requests, each from an index on. If a log has nothing
-- there, return the facts of its request instead.
--   KEYS.load         the counts (load.lua)
--   KEYS.requests[]
--     .log
--     .record         (outcome.lua)
--   ARGV.most         most records of a log
--   ARGV.enough       bytes of a log's records after which to add no further record
--   ARGV.enoughOfAll  bytes of all records after which to add only one more record of each log
--   ARGV.first        records of a log to fetch first
--   ARGV.from[]       for each request, the index to read from
--   Returns per request
--           {count, records, more, t}
--                                    a record on each line; more is 1 if the log may continue; with
--                                    the final record, t has the worker's timings, else ''
--           {0, length, known, kind, body, last}
--                                    the log has nothing at or after the index
--                                      length  of the log
--                                      known   0 if there is no such request, or no longer; else 1
--                                      kind    '' while the request has no outcome
--                                      body    of an error, else ''
--                                      last    the log's last record, once there is an outcome
local load = KEYS.load
-- include ../pieces/outcome.lua
local most, enough = tonumber(ARGV.most), tonumber(ARGV.enough)
local enoughOfAll, first = tonumber(ARGV.enoughOfAll), tonumber(ARGV.first)
local sizeOfAll = 0

-- Records may be large, so the loop fetches few more records than it returns. The first records
-- show how many of that size fit.
local function recordsOf(log, from)
  local records, taken, size, step = {}, 0, 0, first
  local limit = sizeOfAll < enoughOfAll and most or 1
  while taken < limit and size < enough do
    local wanted = math.min(step, limit - taken)
    local run = redis.call('LRANGE', log, from + taken, from + taken + wanted - 1)
    for i = 1, #run do
      if size >= enough then return records, 1 end
      taken = taken + 1
      records[taken] = run[i]
      size = size + #run[i]
      sizeOfAll = sizeOfAll + #run[i]
    end
    if #run < wanted then return records, 0 end
    step = math.max(1, math.ceil((enough - size) * taken / size))
  end
  return records, 1
end

-- The timings of the request, if this is its final record. Inside a JSON string the quotes would be
-- escaped.
local function timingsWith(record, out)
  return record:find('"final":true', 1, true) and redis.call('HGET', out, 't') or ''
end

local function read(log, out, from)
  local records, more = recordsOf(log, from)
  if #records > 0 then
    return {#records, table.concat(records, '\n'), more, timingsWith(records[#records], out)}
  end
  local record = recordOf(load, out)
  local kind = record and record.kind
  local last = kind and redis.call('LINDEX', log, -1)
  return {0, redis.call('LLEN', log), record and 1 or 0, kind or '', kind == 'error' and record.body or '', last or ''}
end

local pages = {}
for i = 1, #KEYS.requests do
  pages[i] = read(KEYS.requests[i].log, KEYS.requests[i].record, tonumber(ARGV.from[i]))
end
return pages
