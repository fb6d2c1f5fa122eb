-- view.lua: what is told of a sequence, and which of its checkpoints is meant. Every script that
-- answers with a sequence includes this file.
-- include ../version.lua
-- include ../sequence.lua

-- Returns the name, the facts, and how many bytes the tensors of the state have.
local function viewOf(base, name, seq)
  local size = 0
  if seq.at ~= '' and seq.at ~= '!' then
    local key = versionKey(base, name, seq.at)
    -- A checkpoint is a frame (frame.ts): the length of its header, the header, the tensors.
    -- The pointer to one on disk says how long that is.
    local head = redis.call('GETRANGE', key, 0, #ON_DISK + 15)
    if head:sub(1, #ON_DISK) == ON_DISK then
      size = tonumber(head:match('^%d+', #ON_DISK + 1))
    elseif #head >= 4 then
      size = redis.call('STRLEN', key) - 4 - struct.unpack('<I4', head)
    end
  end
  return {name, packFacts(seq), size}
end

-- Whether a sequence still exists for those who ask. One that has its END, or has failed, is over,
-- although steps of it may still run.
local function isThere(seq, now) return seq and not hasLapsed(seq, now) and seq.ended == '0' end

-- Find the checkpoint after a step, counted from the START; '' stands for the last one. A step
-- without effect left the checkpoint before it. A sequence may go on from its initial state: then
-- the version is ''.
-- Returns 'kept', number of the step over all STARTs, version
--         'busy'    it has no step yet whose effect could be meant
--         'future'  it has not come so far
--         'gone'    the checkpoint is not kept
local function checkpointAfter(base, name, seq, step)
  if seq.done < seq.start then return 'busy' end
  local wanted, at = step == '' and seq.done or seq.start + tonumber(step) - 1, nil
  if wanted > seq.done then return 'future' end
  if wanted == seq.done then
    at = seq.at
  else
    for item in seq.kept:gmatch('%S+') do
      local number, version = item:match('^(%d+)=(.+)$')
      if tonumber(number) <= wanted then at = version end
    end
  end
  if not at or at ~= '' and redis.call('EXISTS', versionKey(base, name, at)) == 0 then return 'gone' end
  return 'kept', wanted, at
end
