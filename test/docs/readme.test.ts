/**
 * The commands and programs of the README and of docs/ run without a change in any byte; the test's
 * gateway answers for port 8000. Only the demo with audio has a test elsewhere.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeSecret } from "#shared/secret-file.js";
import { pythonWithClient, runPythonText } from "../clients/python.js";
import { connectAs } from "../support/brokers/nats.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { recordsIn } from "../support/streams/event-source.js";
import { until } from "../support/until.js";
import { nth } from "../faults/pace.js";
import { GatewayFront, type FrontHooks } from "./gateway-front.js";
import { blocksOf, pages } from "./pages.js";
import { runPasted } from "./pasted.js";

const demo = ["simple", "accumulate", "word-lstm", "letter-lstm", "tale-gpt", "my_lstm_model"];
/** The commands of each page. A page that is not here has none. */
const COMMANDS: Readonly<Record<string, number>> = {
  "README.md": 6,
  "docs/batches.md": 2,
  "docs/command-line.md": 1,
  "docs/jobs.md": 3,
  "docs/keys.md": 5,
  "docs/models.md": 4,
  "docs/sequences.md": 2,
  "docs/streams.md": 3,
  "docs/webhooks.md": 2,
};
const programs = pages.flatMap(({ path }) => blocksOf("js", path));

describe("the first requests", () => {
  const served = useFleet({ workers: 2, jobs: 1, models: demo, guarded: true, grpc: true });
  const pasted = new Set<string>();
  /** Runs the block of a page with that index. */
  const paste = (path: string, index: number) => {
    const block = blocksOf("sh", path)[index];
    if (block === undefined) throw new Error(`${path} has no command ${index}`);
    pasted.add(block);
    return runPasted(["sh", "-e"], block, served.url);
  };

  it("are twenty-six, two of them in the demo with audio, and the starts stand before them", () => {
    const commands = pages.map(({ path }) => [path, blocksOf("sh", path).length] as const);
    expect(Object.fromEntries(commands.filter(([, count]) => count > 0))).toEqual(COMMANDS);
    expect(Object.values(COMMANDS).reduce((sum, count) => sum + count)).toBe(2 + 26);
    expect(blocksOf("sh", "docs/models.md").map((block) => block.includes("infra/demos/silero-vad"))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(blocksOf("sh", "README.md")[0]).toBe("npm start\n");
    expect(blocksOf("sh", "docs/keys.md")[0]).toBe("BATON_AUTH=keys BATON_HOST=0.0.0.0 npm start\n");
  });

  it("are in blocks of a language that runs, and all other blocks are samples", () => {
    for (const { path, text } of pages) {
      const known = ["sh", "js", "python", "json", "yaml", "mermaid", ""].flatMap((language) =>
        blocksOf(language, path),
      );
      expect(text.match(/^\s*(?:```|~~~)/gm) ?? [], path).toHaveLength(2 * known.length);
    }
    const plain = pages.flatMap(({ path }) => blocksOf("", path));
    expect(plain.filter((block) => !/^(parameters \{|name: ")/.test(block))).toEqual([]);
  });

  it("add and subtract", async () => {
    expect(await paste("README.md", 1)).toContain('"data":[2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]');
  });

  it.skipIf(pythonWithClient === undefined)("speak gRPC (skipped: no Python with Triton's client)", async () => {
    const [program = "", ...others] = pages.flatMap(({ path }) => blocksOf("python", path));
    expect(others).toEqual([]);
    const target = served.fleet.gateways[0]?.grpc ?? "";
    expect(await runPythonText(program.replace("localhost:8001", target))).toContain("20");
  });

  it("remember a sum from one step to the next", async () => {
    const said = await paste("README.md", 2);
    expect(
      [...said.matchAll(/"OUTPUT","datatype":"INT32","shape":\[1,1\],"data":\[(\d+)\]/g)].map(([, sum]) => sum),
    ).toEqual(["20", "42"]);
  });

  it("chat about a cat and a portal", async () => {
    const events = (await paste("README.md", 3)).split("\n").filter((line) => line.startsWith("data: {"));
    const chunks = events.map((line) => JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] });
    const tale = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    expect(events.length).toBeGreaterThan(20);
    expect(tale).toMatch(/\bcat\b/i);
    expect(tale).toMatch(/\bportal\b/i);
  });

  it("stream a tale as Triton does", async () => {
    const events = (await paste("docs/streams.md", 0)).split("\n").filter((line) => line !== "");
    const tale = events.map((line) => (JSON.parse(line.slice(6)) as { text_output: string }).text_output).join("");
    expect(events.length).toBeGreaterThan(20);
    expect(tale).toMatch(/\bcat\b/i);
  });

  it("submit a tale and read it later", async () => {
    const said = await paste("README.md", 4);
    const records = recordsIn(said);
    expect(records.map(({ index }) => index)).toEqual(records.map((_, i) => i));
    expect(records.at(-1)?.reason).toBe("finished");
    expect(records.flatMap(({ choices }) => choices.map(({ text }) => text)).join("")).toMatch(/\bdragon\b/i);
  });

  it("tell a tale that goes on from its opening, and ends", async () => {
    const tale = await paste("docs/sequences.md", 0);
    expect(tale).toMatch(/^Once upon a time\b/);
    expect(tale.split(" ").length).toBeGreaterThan(20);
    expect(tale.trim()).toMatch(/[.!?"]$/);
  });

  it("read a tale as text, as a durable stream", async () => {
    const said = await paste("docs/streams.md", 1);
    expect(said).toMatch(/^event: data\n/m);
    expect(said.trim()).toMatch(/event: control\ndata: {.*"streamClosed":true}$/);
  });

  it("tell where and how a stream is read from NATS", async () => {
    expect(JSON.parse(await paste("docs/streams.md", 2))).toMatchObject({
      subject: expect.stringMatching(/^baton\.v1\.default\.tale-gpt\.[\w-]+$/) as string,
      servers: served.fleet.nats.guard?.env.gateway["BATON_NATS_PUBLIC_URLS"]?.split(","),
      jetstream: null,
    });
  });

  it("submit a job, fetch its result and find it by its label", async () => {
    const said = await paste("docs/jobs.md", 0);
    expect(said).toContain('"text_output":"');
    expect(said).toMatch(/"object":"list","data":\[\{"id":"job_[^"]*","object":"job","type":"generate"/);
    expect(said).toContain('"state":"completed"');
  });

  it("submit a job for later, which is listed until then", async () => {
    const [submitted = "", listed = ""] = (await paste("docs/jobs.md", 1)).replace("}{", "}\n{").split("\n");
    const { id } = JSON.parse(submitted) as { id: string };
    expect(JSON.parse(listed)).toMatchObject({ data: [{ id, state: "scheduled", attempts: 3 }] });
  });

  it("make a schedule, look at it and its jobs, and remove it", async () => {
    const said = await paste("docs/jobs.md", 2);
    expect(said).toMatch(/^\{"id":"sched_[^"]*","object":"schedule","model":"tale-gpt"/);
    expect(said).toContain('"state":"active"');
    expect(said).toContain('{"object":"list","data":[],');
  });

  it("look at a sequence, fork it, carry it and end it", async () => {
    const said = (await paste("docs/sequences.md", 1)).replaceAll("}{", "}\n{").split("\n");
    const ids = said.slice(1).map((line) => (JSON.parse(line) as { sequence_id: number }).sequence_id);
    expect(ids).toEqual([7, 8, 9, 7]);
  });

  it("have a file of requests answered", { timeout: 120_000 }, async () => {
    const said = await paste("docs/batches.md", 0);
    expect(said).toMatch(/"object":"batch","endpoint":"\/v1\/completions"/);
    expect(said).toMatch(/batch batch_\S+: completed, 3 answered, 0 failed$/m);
    expect(said.match(/"status_code":200/g)).toHaveLength(3);
  });

  it("make a webhook, which shows its secret", async () => {
    const made = JSON.parse(await paste("docs/webhooks.md", 0)) as { id: string; secret: string };
    expect([made.id, made.secret]).toEqual([expect.stringMatching(/^wh_/), expect.stringMatching(/^whsec_/)]);
  });

  it("submit a job with a webhook of its own, which shows its secret", async () => {
    const job = JSON.parse(await paste("docs/webhooks.md", 1)) as { id: string; webhook: { secret: string } };
    expect([job.id, job.webhook.secret]).toEqual([expect.stringMatching(/^job_/), expect.stringMatching(/^whsec_/)]);
  });

  it("upload a file", async () => {
    const said = JSON.parse(await paste("docs/batches.md", 1)) as object;
    expect(said).toMatchObject({ object: "file", filename: "lines.jsonl", purpose: "batch", bytes: 113 });
  });

  it("are shorter with the command line", { timeout: 120_000 }, async () => {
    const said = await paste("docs/command-line.md", 0);
    expect(said).toMatch(/\bcat\b/i);
    expect(said).toMatch(/^OUTPUT +INT32 +\[1,1\] +20$/m);
    expect(said).toMatch(/^5 +live +1 +1 /m);
  });

  it("take a step of the tutorials' model", async () => {
    expect(JSON.parse(await paste("docs/models.md", 2))).toMatchObject({
      model_name: "my_lstm_model",
      parameters: { sequence_step: 1 },
    });
  });

  it("write a sentence letter by letter, in one request", async () => {
    expect(await paste("docs/models.md", 3)).toMatch(/^Mira the brave fox lives with [A-Z][a-z]+ [a-z ]+\.\n$/);
  });

  it("show the fleet", async () => {
    const { workers, models } = JSON.parse(await paste("README.md", 5)) as {
      workers: unknown[];
      models: { name: string }[];
    };
    expect(workers).toHaveLength(2);
    expect(models.map(({ name }) => name).sort()).toEqual([...demo].sort());
  });

  it("have all run, but for the starts, the demo with audio, and those of a fleet with keys", () => {
    const all = pages.flatMap(({ path }) => blocksOf("sh", path));
    const elsewhere = (block: string) =>
      block.endsWith("npm start\n") || /infra\/demos\/silero-vad|npm run -s keys/.test(block);
    expect(pasted).toEqual(new Set(all.filter((block) => !elsewhere(block))));
  });
});

describe("the commands for keys", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-docs-keys-"));
  const pepper = join(folder, "pepper");
  makeSecret(pepper);
  afterAll(() => rmSync(folder, { recursive: true }));
  const served = useFleet({
    models: ["tale-gpt"],
    env: { BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: pepper, BATON_AUTH_OPEN: "health,metadata" },
  });
  const paste = (index: number) => {
    const settings = { BATON_HOME: folder, BATON_REDIS_URL: served.fleet.redis.url, BATON_AUTH_SECRET_FILE: pepper };
    return runPasted(["sh", "-e"], blocksOf("sh", "docs/keys.md")[index] ?? "", served.url, settings);
  };

  it("make a key that is let in, and show the operator's", { timeout: 120_000 }, async () => {
    const [models = "", operator] = (await paste(1)).trim().split("\n");
    expect(JSON.parse(models)).toMatchObject({ object: "list", data: [{ id: "tale-gpt" }] });
    expect(operator).toMatch(/^bt_\w+$/);
  });

  it("show the usage of all tenants", { timeout: 120_000 }, async () => {
    expect(JSON.parse(await paste(2))).toMatchObject({ object: "list", data: [], has_more: false });
  });

  it("rotate a key and revoke it", { timeout: 120_000 }, async () => {
    const said = await paste(3);
    expect(said).toMatch(/^bt_\w+\n\{\n {2}"id": /);
    expect(said).toContain('"state": "revoked"');
    expect(said).toMatch(/^\w{12} {2}acme {2}active {2}…\w{4} {2}infer,.* {2}ci$/m);
  });

  it("read a stream with a ticket", { timeout: 120_000 }, async () => {
    expect(await paste(4)).toMatch(/^id: 0\ndata: [\s\S]*"final":true/m);
  });
});

/** Expects every record of a stream once and in order, with the final record at the end. */
function expectWhole(printed: string): void {
  const records = [...printed.matchAll(/\{\s+index: (\d+),\s+choices: /g)];
  expect(records.length).toBeGreaterThan(20);
  expect(records.map(([, index]) => Number(index))).toEqual(records.map((_, i) => i));
  expect(printed.slice(records.at(-1)?.index)).toContain("final: true");
  expect(printed.split("final: true")).toHaveLength(2);
}

const runProgram = (text: string | undefined, url: string) =>
  runPasted(["node", "--input-type=module"], text ?? "", url);

describe("the programs", () => {
  const served = useFleet({ gateways: 1, workers: 1, models: ["tale-gpt"], guarded: true });

  it("are four, the last of them for a fleet that captures records", () => {
    expect(programs.map((text) => text.includes("told.jetstream"))).toEqual([false, false, false, true]);
  });

  it("read a durable stream", async () => {
    expectWhole(await runProgram(programs[0], served.url));
  });

  it("answer a chat", async () => {
    const printed = await runProgram(programs[1], served.url);
    expect(printed).toContain('{"type":"finish","finishReason":"stop"}');
    expect(printed.trim()).toMatch(/"streamClosed":true}$/);
  });

  describe("read a stream from NATS", () => {
    /** Runs the program with a hook before or after its requests to the gateway. */
    async function readThrough(hooks: FrontHooks): Promise<string> {
      const front = await GatewayFront.start(served.url, hooks);
      try {
        return await runProgram(programs[2], front.url);
      } finally {
        front.close();
      }
    }

    it("as it comes", async () => {
      expectWhole(await runProgram(programs[2], served.url));
    });

    it("that has ended before the subscription", async () => {
      const hasEnded = async (id: string) => {
        const { state } = (await (await fetch(`${served.url}/v2/requests/${id}`)).json()) as { state: string };
        return state === "completed";
      };
      let ended = 0;
      const before = async (_method: string, path: string) => {
        const [, id] = /^\/v2\/requests\/([^/]+)\/subscription$/.exec(path) ?? [];
        if (id === undefined) return;
        await until(() => hasEnded(id));
        ended++;
      };
      expectWhole(await readThrough({ before }));
      expect(ended).toBe(1);
    });

    it("that begins behind the subscription, each message twice", async () => {
      const worker = nth(served.fleet.workers, 0);
      const { nats } = served.fleet;
      const echo = await connectAs(nats, "operator");
      const seen = new Set<string>();
      echo.subscribe("baton.v1.>", {
        callback: (_error, message) => {
          const text = message.string();
          if (seen.has(text)) return;
          seen.add(text);
          echo.publish(message.subject, message.data);
        },
      });
      await echo.flush();
      try {
        const printed = await readThrough({
          before: (_method, path) => {
            if (path.endsWith("/generate_stream")) worker.freeze();
          },
          after: (_method, path) => {
            if (path.includes("/stream?")) worker.thaw();
          },
        });
        expectWhole(printed);
        expect(seen.size).toBeGreaterThan(20);
      } finally {
        worker.thaw();
        await echo.close();
      }
    });
  });
});

describe("the program for JetStream", () => {
  const env = { BATON_CAPTURE_TTL_MS: "60000" };
  const served = useFleet({ gateways: 1, workers: 1, models: ["tale-gpt"], guarded: true, env });

  it("reads a stream to its end", async () => {
    expectWhole(await runProgram(programs[3], served.url));
  });
});
