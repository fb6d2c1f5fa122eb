/** A stream whose worker is killed in the middle leaves one whole trace with one takeover. */
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { holderOf, slowDown } from "../../support/streams/stored.js";
import { TraceReceiver } from "../../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../../support/traces/spans.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const STREAM = "POST /v2/models/{model}/generate_stream";
const TOKENS = 400;

describe("a traced stream whose worker is killed with SIGKILL", () => {
  const served = useFleet({
    workers: 2,
    models: ["gen-mha"],
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "0" },
  });

  function stream(headers: Readonly<Record<string, string>>): Promise<Response> {
    const body = { text_input: "the baton", max_tokens: TOKENS, ignore_eos: true, temperature: 1, seed: 5 };
    const url = `${served.url}/v2/models/gen-mha/generate_stream`;
    return fetch(url, { method: "POST", body: JSON.stringify(body), headers });
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
    console.log(pathsOf(spans).join("\n"));
    expect(pathsOf(spans)).toEqual([STREAM, ...rest, ...work].sort());
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
  const data = [...events.matchAll(/^data: (.*)$/gm)].map(
    ([, json = ""]) => JSON.parse(json) as { text_output: string },
  );
  return data.map(({ text_output: text }) => text).join("");
}
