/** Reading the streams of all jobs with a label straight from NATS. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { subjectOfLabel, submitLabelled, tokenOf } from "../support/streams/labels.js";
import { askToSubscribe, listen, readCapturedOfMany, type Subscription } from "../support/streams/subscriber.js";

const served = useFleet({
  gateways: 1,
  workers: 1,
  jobs: 1,
  models: ["gen-mha", "simple"],
  direct: true,
  guarded: true,
  // It is told no key for subscriptions, as in Compose.
  jobsEnv: { BATON_NATS_SIGNING_SEED: "" },
  env: { BATON_CAPTURE_TTL_MS: "600000", BATON_TENANT_HEADER: "x-tenant" },
});

const acme = { "x-tenant": "acme" };
const globex = { "x-tenant": "globex" };
type Tenant = typeof acme;

const generate = (tokens = 40) => ({ text_input: "the baton", parameters: { max_tokens: tokens } });
const submit = (labels: Readonly<Record<string, string>>, headers = acme, options: object = {}, tokens = 40) =>
  submitLabelled(served.url, "gen-mha", generate(tokens), { ...options, labels }, headers);

async function log(id: string, headers: Tenant): Promise<string[]> {
  for (;;) {
    const answer = await fetch(`${served.url}/v2/requests/${id}/stream`, { headers });
    const records = ((await answer.json()) as unknown[]).map((record) => JSON.stringify(record));
    if (answer.headers.get("stream-closed") === "true") return records;
  }
}

async function subscribe(label: string, headers = acme, more: object = {}): Promise<Subscription> {
  const { status, body } = await askToSubscribe(served.url, "/v2/subscriptions", { label, ...more }, headers);
  expect([status, body.error]).toEqual([200, undefined]);
  return body;
}

const labelled = (label: string, request: string, { "x-tenant": tenant } = acme) =>
  subjectOfLabel(tenant, label, "gen-mha", tokenOf(request));

describe("a subscription to a label", () => {
  it("has the streams of its jobs, live and late, and no others", async () => {
    const told = await subscribe("team:blue");
    expect(told.subject).toBe(subjectOfLabel("acme", "team:blue"));
    const live = await listen(told);
    const [blue, red] = [await submit({ team: "blue" }), await submit({ team: "red" })];
    const theirs = await submit({ team: "blue" }, globex);
    const records = await log(blue.request, acme);
    expect((await live.of(labelled("team:blue", blue.request))).texts).toEqual(records);
    const both = await submit({ team: "blue", "job.kind": "tale: long, and with 'ü'" });
    const [ofBoth] = [await log(both.request, acme), await log(red.request, acme), await log(theirs.request, globex)];
    const late = await readCapturedOfMany(told, 2);
    expect([...late.keys()]).toEqual([blue, both].map(({ request }) => labelled("team:blue", request)));
    expect([...late.values()].map(({ texts }) => texts)).toEqual([records, ofBoth]);
    const kind = "job.kind:tale: long, and with 'ü'";
    const byKind = await readCapturedOfMany(await subscribe(kind), 1);
    expect([...byKind].map(([subject, { texts }]) => [subject, texts])).toEqual([
      [labelled(kind, both.request), ofBoth],
    ]);
  });
});
