/**
 * Loaded into a worker before its program. If the file that DIE_BEFORE names contains an index, the
 * process kills itself by SIGKILL just before it sends the record with that index to NATS. The
 * record is then in the log, and no client has seen it. This happens once, because the process
 * removes the file first.
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
