/** One tenant's bodies leave room for those of others. */
import { request, type ClientRequest } from "node:http";
import { once } from "node:events";
import { expect, it } from "vitest";
import { inferBody } from "../support/gateway/http.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const MiB = 1024 * 1024;
const fleet = useKeyedFleet({
  models: ["echo-uint8"],
  direct: true,
  env: {
    BATON_BODY_MEMORY_BYTES: String(4 * MiB),
    BATON_MAX_BODY_BYTES: String(2 * MiB),
    BATON_MAX_JSON_BYTES: String(MiB),
  },
});
const { served, make, setTenant } = fleet;

const { headers: form, body } = inferBody(
  { inputs: [{ name: "INPUT", datatype: "UINT8", shape: [1, MiB], parameters: { binary_data_size: MiB } }] },
  Buffer.alloc(MiB),
);
const LAST = 1;

/** Sends a body without its last byte. */
function begin(key: Key, path = "/v2/models/echo-uint8/infer"): ClientRequest {
  const headers = { ...form, ...key.headers, "content-length": body.length };
  const sent = request(`${served.url}${path}`, { method: "POST", headers });
  sent.write(body.subarray(0, -LAST));
  return sent;
}

async function answerTo(sent: ClientRequest): Promise<{ status: number; text: string }> {
  const [incoming] = (await once(sent, "response")) as [AsyncIterable<Buffer> & { statusCode: number }];
  let text = "";
  for await (const piece of incoming) text += piece.toString("latin1");
  return { status: incoming.statusCode, text };
}

const whole = (key: Key) => {
  const sent = begin(key);
  sent.end(body.subarray(-LAST));
  return answerTo(sent);
};

/**
 * @returns a body of the first key that the gateway holds, and the answer to one of the second. The
 * gateway may read the second first, and then refuses the first.
 */
async function fill(first: Key, second: Key) {
  for (;;) {
    const held = begin(first);
    const isRefused = new AbortController();
    held.once("response", () => isRefused.abort()).on("error", () => undefined);
    while (!isRefused.signal.aborted) {
      const refused = await whole(second);
      if (refused.status !== 200) return { held, refused };
    }
  }
}

it("a tenant's bodies have half of the memory, whatever its key, and those of others have room", async () => {
  const [first, second, other] = [
    await make({ tenant: "acme" }),
    await make({ tenant: "acme" }),
    await make({ tenant: "other" }),
  ];
  const { held, refused } = await fill(first, second);
  expect(JSON.parse(refused.text)).toEqual({
    error: `the tenant's request bodies together are larger than the limit of ${2 * MiB} bytes, try again later`,
    code: "unavailable",
  });
  expect((await whole(other)).status).toBe(200);
  const job = { infer: { inputs: [{ name: "INPUT", datatype: "UINT8", shape: [1, 1], data: [7] }] } };
  const submit = ({ headers }: Key) =>
    fetch(`${served.url}/v2/models/echo-uint8/jobs`, {
      method: "POST",
      headers,
      body: JSON.stringify(job).padEnd(MiB),
    });
  expect([(await submit(second)).status, (await submit(other)).status]).toEqual([503, 202]);
  await setTenant("acme", { limits: { body_bytes: 3 * MiB } });
  await expect.poll(async () => (await whole(second)).status, { timeout: 10_000 }).toBe(200);
  held.end(body.subarray(-LAST));
  expect((await answerTo(held)).status).toBe(200);
});
