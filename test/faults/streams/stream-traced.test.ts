/** A stream whose worker is killed in the middle leaves one whole trace with one takeover. */
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { holderOf, slowDown } from "../../support/streams/stored.js";
import { TraceReceiver } from "../../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../../support/traces/spans.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const STREAM = "POST /v1/chat/completions";
const TOKENS = 400;

describe("a traced stream whose worker is killed with SIGKILL", () => {
  const served = useFleet({
    workers: 2,
    models: ["gen-mha"],
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "0" },
  });

  function stream(headers: Readonly<Record<string, string>>): Promise<Response> {
    const messages = [{ role: "user", content: "the baton" }];
    const sampling = { max_tokens: TOKENS, ignore_eos: true, temperature: 1, seed: 5 };
    const body = { model: "gen-mha", messages, ...sampling, stream: true };
    return fetch(`${served.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), headers });
  }

  it("has every span, the takeover as an event, and the text that it has undisturbed", async () => {
    const undisturbed = await (await stream({})).text();
    const { traceId, headers } = clientsTrace();
    const { fleet, redis } = served;
    slowDown(fleet);
    const answer = await stream(headers);
    const id = answer.headers.get("baton-request-id") ?? "";
    const text = answer.text();
    const holder = await holderOf(redis, fleet.workers, id);
    await holder.kill();
    fleet.lines.workerRedis.heal();
    expect(textOf(await text)).toBe(textOf(undisturbed));

    const spans = await receiver.whole(traceId, [
      STREAM,
      "admit",
      "queue",
      "process",
      "prefill",
      "decode",
      "commit",
      "relay",
    ]);
    const work = ["prefill", "decode", "commit"].map((name) => `${STREAM} > admit > process > ${name}`);
    const rest = ["admit", "admit > queue", "admit > process", "relay"].map((path) => `${STREAM} > ${path}`);
    expect(pathsOf(spans)).toEqual([STREAM, ...rest, ...work].sort());
    expect(named(spans, "queue").attributes).toMatchObject({ "baton.deliveries": 2 });
    const process = named(spans, "process");
    const second = String(process.resource["service.instance.id"]);
    expect(second).not.toContain(holder.name);
    expect(spans.flatMap(({ events }) => events.filter(({ name }) => name === "takeover"))).toEqual(process.events);
    expect(process.events).toMatchObject([
      {
        name: "takeover",
        attributes: {
          "baton.takeover.from": expect.stringContaining(holder.name) as string,
          "baton.takeover.to": second,
          "baton.takeover.index": expect.any(Number) as number,
          "baton.takeover.waited_ms": expect.any(Number) as number,
        },
      },
    ]);
  });
});

/** The texts of all events together. */
function textOf(events: string): string {
  const data = [...events.matchAll(/^data: (\{.*)$/gm)].map(([, json = ""]) => JSON.parse(json) as Chunk);
  return data.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? "")).join("");
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}
