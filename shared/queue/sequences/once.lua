-- once.lua: how a change to a sequence takes effect once under an Idempotency-Key. The script that
-- makes the change also writes its record, so both are there or neither is; a refusal leaves no
-- record. The scripts that end, rewind, fork or import a sequence include this file.
--   `record`  key of the record; '' if the change has no Idempotency-Key
--   `digest`  of the client's order

-- Returns the answer of the first try, {'mismatch'} if the key belongs to another change, or nil.
local function answeredBefore(record, digest)
  local kept = record ~= '' and redis.call('GET', record)
  if not kept then return nil end
  local first, answer = cmsgpack.unpack(kept)
  if first ~= digest then return {'mismatch'} end
  return answer
end

-- Returns the answer, and keeps it for the next try.
local function answerOnce(record, digest, ttl, answer)
  if record ~= '' then redis.call('SET', record, cmsgpack.pack(digest, answer), 'PX', ttl) end
  return answer
end
