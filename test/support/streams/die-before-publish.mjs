/**
 * Loaded into a worker before its program. Where the file that DIE_BEFORE names has an index, the
 * process ends itself by SIGKILL when it is about to send the record with that index to NATS: the
 * record is in the log by then, and nobody has seen it. It does so once.
 */
import { readFileSync, unlinkSync } from "node:fs";
import { Socket } from "node:net";

const file = process.env["DIE_BEFORE"] ?? "";
const write = Reflect.get(Socket.prototype, "write");

/** @returns {string | undefined} */
function wanted() {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** @param {[any, ...any[]]} args */
Socket.prototype.write = function (...args) {
  const [chunk] = args;
  if (chunk instanceof Uint8Array) {
    const sent = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const index = sent.includes("PUB baton.v1.") ? wanted() : undefined;
    if (index !== undefined && sent.includes(`{"index":${index},`)) {
      unlinkSync(file);
      process.kill(process.pid, "SIGKILL");
    }
  }
  return Reflect.apply(write, this, args);
};
