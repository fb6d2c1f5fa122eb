/** Makes the bytes of connections, from plain requests to smuggling tricks, from a seed. */
import type { Random } from "../../../support/fleet/random.js";
import { inferPath, int32Input } from "../../../fixtures/requests.js";
import { inferBody } from "../../../support/gateway/http.js";
import type { Conversation } from "./twins.js";

interface Draft {
  line: string;
  fields: string[];
  body: Buffer;
}

/** A request, often a plain one. */
function draft(random: Random): Draft {
  const value = random.between(0, 99);
  const binary = random.chance(0.4);
  const model = random.pick(["echo-INT32", "echo-INT32", "versioned", "versioned/versions/2", "seq", "none"]);
  const { data, ...bare } = { ...int32Input(value), shape: model === "seq" ? [1, 1] : [1] };
  const block = Buffer.alloc(4);
  block.writeInt32LE(value);
  const common = { id: `i${value}`, parameters: { sequence_id: value, sequence_start: random.chance(0.5) } };
  const { headers, body } = binary
    ? inferBody({ ...common, inputs: [{ ...bare, parameters: { binary_data_size: 4 } }] }, block)
    : inferBody({ ...common, inputs: [{ ...bare, data }] });
  const fields = ["Host: localhost:8000", `Content-Length: ${body.length}`];
  for (const [name, text] of Object.entries(headers)) fields.push(`${name}: ${text}`);
  if (random.chance(0.3)) fields.push("Content-Type: application/octet-stream", "Accept: */*");
  if (random.chance(0.2)) fields.push("Connection: keep-alive");
  if (random.chance(0.2)) fields.push(`Idempotency-Key: k${value}`);
  return { line: `POST ${inferPath(model)} HTTP/1.1`, fields: random.shuffle(fields), body };
}

const bytesOf = ({ line, fields, body }: Draft, end = "\r\n"): Buffer =>
  Buffer.concat([Buffer.from([line, ...fields, "", ""].join(end), "latin1"), body]);

/** Changes to the field that gives the length, whose value follows the name. */
const lengths: readonly ((length: number) => string | string[])[] = [
  (length) => `Content-Length: ${length + 1}`,
  (length) => `Content-Length: ${length - 1}`,
  (length) => `Content-Length: 0${length}`,
  (length) => `Content-Length: +${length}`,
  (length) => `Content-Length: -${length}`,
  (length) => `Content-Length: 0x${length.toString(16)}`,
  (length) => `Content-Length: ${length}, ${length}`,
  (length) => `Content-Length: ${length} `,
  (length) => `Content-Length:${length}`,
  (length) => `Content-Length:\t${length}`,
  (length) => `Content-Length : ${length}`,
  (length) => ` Content-Length: ${length}`,
  (length) => `Content_Length: ${length}`,
  (length) => `Content-Length: ${length}\n`,
  (length) => `content-length: ${length}.0`,
  (length) => `CONTENT-LENGTH: ${length}`,
  (length) => [`Content-Length: ${length}`, `Content-Length: ${length}`],
  (length) => [`Content-Length: ${length}`, "Content-Length: 0"],
  (length) => [`Content-Length: ${length}`, "Transfer-Encoding: chunked"],
  (length) => ["Transfer-Encoding: chunked", `Content-Length: ${length}`],
  () => "Content-Length: 0",
  () => "Content-Length: 99999999999999999999",
  () => "Content-Length: 70000",
  () => "Content-Length:",
  () => [],
];

/** Fields beside the others. */
const oddFields: readonly string[] = [
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding : chunked",
  "transfer-encoding:\tchunked",
  "Transfer-Encoding: xchunked",
  "Transfer-Encoding: chunked, identity",
  "Transfer_Encoding: chunked",
  "X: a\r\n Transfer-Encoding: chunked",
  "X: a\nTransfer-Encoding: chunked",
  "X: a\rTransfer-Encoding: chunked",
  "X: a\0b",
  "X: \u00e9",
  "X:",
  ": x",
  "X",
  "X y: z",
  "Host: other",
  "Host: evil.example",
  "Origin: http://evil.example",
  "Sec-Fetch-Site: cross-site",
  "Connection: close",
  "Connection: Content-Length",
  "Connection: upgrade\r\nUpgrade: h2c",
  "Upgrade: websocket",
  "Expect: 100-continue",
  "Expect: 200-ok",
  "Content-Encoding: br",
  "Content-Encoding: identity",
  "Trailer: X",
  "TE: trailers",
  "Keep-Alive: timeout=100",
  "Inference-Header-Content-Length: 5",
  "Inference-Header-Content-Length: x",
  "Accept-Encoding: gzip",
  "Prefer: wait=1",
  "Idempotency-Key: \u007f",
  "X-Request-Id: given",
  "__proto__: x",
  "Constructor: x",
  `X: ${"a".repeat(9_000)}`,
  `X: ${"a".repeat(17_000)}`,
];

const lines: readonly ((line: string) => string)[] = [
  (line) => line.replace("POST", "GET"),
  (line) => line.replace("POST", "post"),
  (line) => line.replace("POST", "POST "),
  (line) => ` ${line}`,
  (line) => `\r\n${line}`,
  (line) => line.replace("HTTP/1.1", "HTTP/1.0"),
  (line) => line.replace("HTTP/1.1", "HTTP/2.0"),
  (line) => line.replace(" HTTP/1.1", ""),
  (line) => line.replace("/infer", "/infer?x=1"),
  (line) => line.replace("/infer", "/infer/"),
  (line) => line.replace("/infer", "/../infer"),
  (line) => line.replace("/infer", "/%69nfer"),
  (line) => line.replace("/infer", "/generate"),
  (line) => line.replace("/v2/", "//v2/"),
  (line) => line.replace("/v2/", "http://localhost/v2/"),
  (line) => line.replace("/v2/", "http://evil.example/v2/"),
  (line) => line.replace("echo-INT32", "echo-..-INT32"),
];

/** Every change to the head, with a whole request hidden behind it, in two pieces and in one. */
export function tricks(random: Random): [name: string, Conversation, Conversation][] {
  const changes = [
    ...lengths.map((change) => (one: Draft) => {
      return { ...one, fields: ["Host: h", ...[change(one.body.length)].flat()] };
    }),
    ...oddFields.map((field) => (one: Draft) => ({ ...one, fields: [...one.fields, field] })),
    ...lines.map((change) => (one: Draft) => ({ ...one, line: change(one.line) })),
  ];
  return changes.map((change) => {
    const [first, second, hidden] = [draft(random), draft(random), draft(random)];
    const changed = change(second);
    const name = [changed.line, ...changed.fields].join(" | ").slice(0, 200);
    const pieces = [first, changed, hidden].map((one) => bytesOf(one));
    return [JSON.stringify(name), pieces, [bytesOf(first), Buffer.concat(pieces.slice(1))]];
  });
}

/** One change to a request. */
function spoil(random: Random, one: Draft): Buffer {
  switch (random.between(0, 6)) {
    case 0: {
      const kept = one.fields.filter((field) => !field.startsWith("Content-Length"));
      return bytesOf({ ...one, fields: random.shuffle([...kept, ...[random.pick(lengths)(one.body.length)].flat()]) });
    }
    case 1:
      return bytesOf({ ...one, line: random.pick(lines)(one.line) });
    case 2:
      return bytesOf(one, random.pick(["\n", "\r", "\n\r"]));
    case 3: {
      const bytes = bytesOf(one);
      bytes[random.between(0, bytes.length - 1)] = random.between(0, 255);
      return bytes;
    }
    case 4: {
      const bytes = bytesOf(one);
      return bytes.subarray(0, random.between(0, bytes.length));
    }
    default:
      return bytesOf({ ...one, fields: random.shuffle([...one.fields, random.pick(oddFields)]) });
  }
}

/** Up to four requests on one connection, in up to four pieces. */
export function conversation(random: Random): Conversation {
  const requests = Array.from({ length: random.between(1, 4) }, () => {
    const one = draft(random);
    return random.chance(0.35) ? spoil(random, one) : bytesOf(one);
  });
  // A piece for each request, or cuts at any place.
  if (random.chance(0.5)) return requests.filter(({ length }) => length > 0);
  const bytes = Buffer.concat(requests);
  const cuts = Array.from({ length: random.between(0, 3) }, () => random.between(0, bytes.length)).sort(
    (a, b) => a - b,
  );
  return [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i])).filter(({ length }) => length > 0);
}
