-- once.lua: a change to a sequence under an Idempotency-Key is made once. Its record is written by
-- the script that makes the change, so both are there or neither is; a refusal leaves none. Every
-- script that changes a sequence as a whole includes this file.
--   `record`  key of the record; '' where the change has no Idempotency-Key
--   `digest`  of what is asked

-- Returns the answer of the first try, or {'mismatch'} where the key was used for something else.
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
