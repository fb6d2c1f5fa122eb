-- view.lua: the view of a sequence, and the choice of one of its checkpoints. Every script that
-- answers with a sequence includes this file.
-- include ../pieces/version.lua
-- include ../pieces/sequence.lua

-- Returns a view (records/sequence.ts).
local function viewOf(base, name, seq)
  local size, state = 0, isBusy(seq) and 'busy' or 'live'
  if seq.at ~= '' and seq.at ~= '!' then
    local key = versionKey(base, name, seq.at)
    -- A checkpoint is a frame (frame.ts): the length of its header, the header, the tensors. The
    -- pointer to a checkpoint on disk has the bytes of its tensors.
    local head = redis.call('GETRANGE', key, 0, #ON_DISK + 15)
    if head:sub(1, #ON_DISK) == ON_DISK then
      size = tonumber(head:match('^%d+', #ON_DISK + 1))
      if state == 'live' then state = 'hibernating' end
    elseif #head >= 4 then
      size = redis.call('STRLEN', key) - 4 - struct.unpack('<I4', head)
    end
  end
  return LIST.sequenceView{name = name, facts = packSequence(seq), stateBytes = size, state = state}
end

-- Whether a sequence still exists for clients. A sequence with its END, or a failed sequence, is
-- over, although some steps may still run.
local function isThere(seq, now) return seq and not hasLapsed(seq, now) and seq.ended == '0' end

-- Find the checkpoint after a step, counted from the START; '' stands for the last step. A step
-- without effect left the checkpoint before it. The version is '' if the sequence continues from
-- its initial state.
-- Returns 'kept', number of the step over all STARTs, version
--         'busy'    no step since the START has ended yet
--         'future'  the sequence has not come so far
--         'gone'    Redis no longer has the checkpoint
local function checkpointAfter(base, name, seq, step)
  if seq.done < seq.start then return 'busy' end
  local wanted, at = step == '' and seq.done or seq.start + tonumber(step) - 1, nil
  if wanted > seq.done then return 'future' end
  if wanted == seq.done then
    at = seq.at
  else
    for item in seq.kept:gmatch('%S+') do
      local number, version = item:match(PATTERN.checkpoint(step, version))
      if tonumber(number) <= wanted then at = version end
    end
  end
  if not at or at ~= '' and redis.call('EXISTS', versionKey(base, name, at)) == 0 then return 'gone' end
  return 'kept', wanted, at
end
