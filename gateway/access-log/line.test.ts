import { expect, it } from "vitest";
import { lineOf, type LineFacts } from "./line.js";
import { protocolOf } from "./protocol.js";

const unknown: LineFacts = {
  time: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  id: undefined,
  request: undefined,
  gateway: "gw-1",
  tenant: undefined,
  client: undefined,
  protocol: undefined,
  method: undefined,
  route: undefined,
  path: undefined,
  model: undefined,
  version: undefined,
  sequence: undefined,
  step: undefined,
  status: undefined,
  code: undefined,
  replayed: undefined,
  bytesIn: 0,
  bytesOut: 0,
  ms: 1.23456,
  firstMs: undefined,
  timings: undefined,
  worker: undefined,
  records: undefined,
  tokensIn: undefined,
  tokensOut: undefined,
  isWhole: false,
  trace: undefined,
  agent: undefined,
};

it("a line has all members in their order, and null for what is unknown", () => {
  expect(lineOf(unknown)).toBe(
    '{"time":"2026-01-02T03:04:05.006Z","id":null,"request":null,"gateway":"gw-1","tenant":null,"client":null,' +
      '"protocol":null,"method":null,"route":null,"path":null,"model":null,"version":null,"sequence":null,' +
      '"step":null,"status":null,"code":null,"replayed":null,"bytes_in":0,"bytes_out":0,"ms":1.235,"first_ms":null,' +
      '"queue_ms":null,"run_ms":null,"worker":null,"records":null,"tokens_in":null,"tokens_out":null,' +
      '"ended":"cut","trace":null,"agent":null}\n',
  );
});

it.each(['"\\', "\n\r\t\0\u001b[2J", "\u007f\u0085\u2028\u2029", "\ud800", "<img onerror=x>", "日本"])(
  "a text of a client is whole, and in ASCII: %j",
  (text) => {
    const line = lineOf({ ...unknown, path: text, agent: text, sequence: text });
    expect(line).toMatch(/^[ -~]+\n$/);
    expect(JSON.parse(line)).toMatchObject({ path: text, agent: text, sequence: text });
  },
);

it("a long text is cut, and no part of a secret is left", () => {
  const text = "ab ".repeat(200);
  const read = JSON.parse(lineOf({ ...unknown, path: text, agent: text })) as Record<string, string>;
  expect(read).toMatchObject({ path: text.slice(0, 256), agent: text.slice(0, 128) });
  const secret = "s3cr3t".repeat(8);
  expect(lineOf({ ...unknown, agent: `${"- ".repeat(60)}${secret}`, path: `/${secret}` })).not.toContain("s3cr");
});

it.each([
  ["/v1/chat/completions", "openai"],
  ["/v2", "kserve"],
  ["/v2/health/live", "kserve"],
  ["/v2/models/m/versions/1/infer", "kserve"],
  ["/v2/models/m/sequences/7", "kserve"],
  ["/v2/models/m/jobs", "jobs"],
  ["/v2/models/m/versions/1/schedules", "jobs"],
  ["/v2/dead/x", "jobs"],
  ["/v2/requests/x/events", "own"],
  ["/v2/fleet", "own"],
  ["/v2/constructor", "own"],
  ["/console/", "own"],
  ["/", undefined],
  ["*", undefined],
])("%s is a path of %s", (path, protocol) => {
  expect(protocolOf(path)).toBe(protocol);
});
