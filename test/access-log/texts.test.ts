/** The texts of hostile clients make no further lines, and what is secret is in none. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { useKeyedFleet } from "../auth/keyed.js";
import { newKey } from "../../gateway/auth/key.js";
import { readFileSync } from "node:fs";
import { linesOf, linesWith, logFolder, type Line } from "./lines.js";
import { exchange } from "./raw.js";

const path = join(logFolder(), "access.log");
const fleet = useKeyedFleet({ models: ["simple"], direct: true, env: { BATON_ACCESS_LOG: path } });
const { served } = fleet;

const raw = (target: string, agent: string, more = "") =>
  exchange(
    served.url,
    `GET ${target} HTTP/1.1\r\nhost: localhost\r\nuser-agent: ${agent}\r\nconnection: close\r\n${more}\r\n`,
  );
const of = async (isIt: (line: Line) => boolean) => (await linesWith(path, isIt))[0];

it("control characters, quotes and other alphabets stay within their line, and long texts are cut", async () => {
  await raw("/\"\\{}'<img>", '\x85\xff\t"},{');
  const line = await of(({ agent }) => String(agent).endsWith('"},{'));
  expect(line).toMatchObject({ path: "/\"\\{}'<img>", agent: '\x85\xff\t"},{' });
  await raw(`/${"a-".repeat(2_000)}`, "b-".repeat(2_000));
  const long = await of(({ path: found }) => String(found).startsWith("/a-"));
  expect([String(long?.path).length, String(long?.agent).length]).toEqual([256, 128]);
  expect(readFileSync(path, "latin1")).toMatch(/^[\n -~]*$/);
  await raw("http://user:secret@localhost/absolute", "absolute");
  expect(await of(({ agent }) => agent === "absolute")).toMatchObject({ path: "/absolute" });
});

it("keys, queries and other headers are in no line", async () => {
  const { text, headers } = await fleet.make();
  const wrong = newKey().text;
  await raw(
    `/v2/${text}?ticket=${text}&q=query-text`,
    text,
    `authorization: Bearer ${text}\r\nx-other: header-text\r\n`,
  );
  await raw("/v2/jobs?q=query-text", `key ${wrong}`, `authorization: Bearer ${wrong}\r\n`);
  const refused = await of(({ path: asked, status }) => asked === "/v2/jobs" && status === 401);
  expect(refused).toMatchObject({ tenant: null, code: "invalid_api_key", agent: expect.stringMatching(/\*{20}/) });
  const answer = await fetch(`${served.url}/v2/jobs`, { headers: { ...headers, "user-agent": "mine" } });
  expect(answer.status).toBe(200);
  expect(await of(({ agent }) => agent === "mine")).toMatchObject({ tenant: "acme", status: 200 });
  const all = readFileSync(path, "latin1");
  for (const secret of [text, wrong, "query-text", "header-text"]) expect(all).not.toContain(secret);
});

it("a tenant is the owner's, also if headers say another", async () => {
  const { headers } = await fleet.make({ tenant: "owner" });
  const body = JSON.stringify({ inputs: [] });
  const manner = { headers: { ...headers, "user-agent": "posts", "x-tenant": "other" }, method: "POST", body };
  expect((await fetch(`${served.url}/v2/models/simple/infer`, manner)).status).toBe(400);
  await fetch(`${served.url}/v2/models/simple/infer?framework`, manner);
  await linesWith(path, ({ agent }) => agent === "posts", 2);
  const posted = linesOf(path).filter(({ agent }) => agent === "posts");
  expect(posted).toHaveLength(2);
  expect(posted.map(({ tenant, model }) => [tenant, model])).toEqual(posted.map(() => ["owner", "simple"]));
});
