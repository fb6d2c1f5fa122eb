/**
 * HTTP/2 frame by frame, for what no client library sends. Headers are literals without an index
 * (RFC 7541, section 6.2.2), so no table of the connection has to agree.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Duplex, Transform } from "node:stream";

export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
const GOAWAY = 7;
export const CONTINUATION = 9;
export const END_STREAM = 1;
export const END_HEADERS = 4;
/** Bytes before the payload of a frame. */
const HEAD = 9;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function headerBlock(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]));
}

/** The head of a call, with these fields besides. */
export function callHead(path: string, more: readonly (readonly [string, string])[] = []): Buffer {
  return headerBlock([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "gateway"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...more,
  ]);
}

/** A length of seven bits, continued in more bytes if it is larger (section 5.1), and the bytes. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let left = bytes.length - 127;
  for (; left >= 128; left = Math.floor(left / 128)) length.push((left % 128) + 128);
  return Buffer.concat([Buffer.of(...length, left), bytes]);
}

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** A connection for Node's client of HTTP/2, which adds fields to each head on its way out. */
export function adding(target: string, fields: readonly (readonly [string, string])[]): Duplex {
  const [host = "", port = ""] = target.split(":");
  const socket = connect(Number(port), host);
  let waiting: Buffer = Buffer.alloc(0);
  let prefaced = false;
  const outgoing = new Transform({
    transform(bytes: Buffer, _, done) {
      waiting = Buffer.concat([waiting, bytes]);
      if (!prefaced) {
        if (waiting.length < PREFACE.length) {
          done();
          return;
        }
        this.push(waiting.subarray(0, PREFACE.length));
        waiting = waiting.subarray(PREFACE.length);
        prefaced = true;
      }
      while (waiting.length >= HEAD && waiting.length >= HEAD + waiting.readUIntBE(0, 3)) {
        const payload = waiting.subarray(HEAD, HEAD + waiting.readUIntBE(0, 3));
        const [type, flags, stream] = [waiting.readUInt8(3), waiting.readUInt8(4), waiting.readUInt32BE(5)];
        const more = type === HEADERS ? headerBlock(fields) : Buffer.alloc(0);
        this.push(frame(type, flags, stream, Buffer.concat([payload, more])));
        waiting = waiting.subarray(HEAD + payload.length);
      }
      done();
    },
  });
  outgoing.pipe(socket);
  return Duplex.from({ readable: socket, writable: outgoing });
}

/** A connection that has said hello, with settings if any: pairs of an id and a value. */
export async function hello(target: string, settings: Buffer = Buffer.alloc(0)): Promise<Socket> {
  const [host = "", port = ""] = target.split(":");
  const socket = connect(Number(port), host);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(PREFACE);
  socket.write(frame(SETTINGS, 0, 0, settings));
  return socket;
}

/**
 * Resolves when the other side says GOAWAY, after which it reads nothing more, or when it closes
 * the connection.
 */
export function dismissed(socket: Socket): Promise<"told" | "closed"> {
  let bytes: Buffer = Buffer.alloc(0);
  return new Promise((resolve) => {
    socket.once("close", () => resolve("closed"));
    socket.on("data", (piece: Buffer) => {
      bytes = Buffer.concat([bytes, piece]);
      while (bytes.length >= HEAD && bytes.length >= HEAD + bytes.readUIntBE(0, 3)) {
        if (bytes.readUInt8(3) === GOAWAY) resolve("told");
        bytes = bytes.subarray(HEAD + bytes.readUIntBE(0, 3));
      }
    });
  });
}

/** Sends as fast as the connection takes it, until the other side wants no more, and leaves. */
export async function flood(socket: Socket, next: () => Buffer): Promise<void> {
  const over = new AbortController();
  const end = dismissed(socket).then(() => over.abort());
  while (!over.signal.aborted) {
    if (!socket.write(next())) await Promise.race([new Promise((resolve) => socket.once("drain", resolve)), end]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.destroy();
}
