-- report.lua: what processes have counted since their start. Beats of workers and notes of other
-- processes bring the pages that have changed, so a page is written whole and never read on the
-- way. A page has some parts (records/reports.ts), with a line for each.
--   key `reports`  hash: `<process>` -> the number of its pages, and `<process> <n>` -> its nth
--                  page. Page 0 is the load of a worker, and no part of a report
--   key `past`     hash: the subject of a part -> a part with the sums over the processes that are
--                  gone
-- record report: unpackReport packReport
local REPORT_MOST, REPORT_PAGE = 10000, 300
-- More parts than so many pages have, and fewer than Lua's unpack takes.
local PARTS_AT_ONCE = 3000

-- Returns the sums of two parts, place by place. A place that only one part has counts, too: a
-- later version of Baton may report more.
local function addedSums(a, b)
  local sums, place = {}, 0
  for number in a:gmatch('%d+') do sums[#sums + 1] = tonumber(number) end
  for number in b:gmatch('%d+') do
    place = place + 1
    sums[place] = (sums[place] or 0) + tonumber(number)
  end
  for i = 1, #sums do sums[i] = string.format('%.0f', sums[i]) end
  return table.concat(sums, ' ')
end

-- Move the report of a process into the past. A second call finds no report. Nothing that a person
-- writes to these keys by hand makes a burial fail.
local function foldReport(reports, past, name)
  local count = redis.pcall('HGET', reports, name)
  count = type(count) == 'string' and math.min(tonumber(count) or 0, REPORT_MOST) or 0
  for from = 0, count - 1, REPORT_PAGE do
    local fields, parts, subjects, values = {}, {}, {}, {}
    for n = from, math.min(from + REPORT_PAGE, count) - 1 do fields[#fields + 1] = name .. ' ' .. n end
    for _, page in ipairs(redis.call('HMGET', reports, unpack(fields))) do
      for line in (page or ''):gmatch('[^\n]+') do
        local part = unpackReport(line)
        local isSum = part and not part.subject:find('/jobs ', 1, true)
        if isSum and #parts < PARTS_AT_ONCE then parts[#parts + 1], subjects[#subjects + 1] = part, part.subject end
      end
    end
    local before = #parts > 0 and redis.pcall('HMGET', past, unpack(subjects)) or {}
    for i = 1, #parts do
      local part, earlier = parts[i], before[i] and unpackReport(before[i])
      if earlier then
        part.sums = addedSums(earlier.sums, part.sums)
        if tonumber(earlier.last) > tonumber(part.last) then part.last = earlier.last end
      end
      values[#values + 1], values[#values + 2] = part.subject, packReport(part)
    end
    if #values > 0 then redis.pcall('HSET', past, unpack(values)) end
    redis.call('HDEL', reports, unpack(fields))
  end
  if count > 0 then redis.call('HDEL', reports, name) end
end
