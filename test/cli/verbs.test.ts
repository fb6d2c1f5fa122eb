import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/brokers/port.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { baton, type Surroundings } from "./baton.js";

const served = useFleet({ models: ["simple", "accumulate", "bytes-memory", "tale-gpt"] });
const ask = (args: readonly string[], more: Surroundings = {}) => baton(args, { url: served.url, ...more });
const story = "Write a short story about a cat who discovers a secret portal.";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-cli-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: object | string): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** One step of a sequence of the model that adds up. */
function step(id: number, value: number, start = false): object {
  const parameters = { sequence_id: id, ...(start && { sequence_start: true }) };
  return { parameters, inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }] };
}

/** The first step of a sequence of a model whose sequences have strings for ids. */
function beginning(id: string): object {
  const inputs = [
    { name: "TEXT", datatype: "BYTES", shape: [1, 1], data: ["a \u001b[31mword"] },
    { name: "PICK", datatype: "BOOL", shape: [1, 1], data: [false] },
  ];
  return { parameters: { sequence_id: id, sequence_start: true }, inputs };
}

/** Makes a step without the command line. */
async function send(model: string, body: string): Promise<void> {
  const { status } = await fetch(`${served.url}/v2/models/${model}/infer`, { method: "POST", body });
  expect(status).toBe(200);
}

async function steps(id: number, ...values: number[]): Promise<void> {
  for (const [i, value] of values.entries()) await send("accumulate", JSON.stringify(step(id, value, i === 0)));
}

const row = Array.from({ length: 16 }, (_, i) => i);
const sum = { inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: row })) };

describe("models", () => {
  it("lists what is served, and what could not be loaded", async () => {
    const { code, stdout } = await ask(["models"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^MODEL +VERSION +STATE/);
    expect(stdout).toMatch(/^simple +1 +READY$/m);
    const { stdout: json } = await ask(["models", "--json"]);
    expect(JSON.parse(json)).toContainEqual({ name: "tale-gpt", version: "1", state: "READY" });
  });
});

describe("infer", () => {
  it("sends the file, and shows the outputs", async () => {
    const { code, stdout, stderr } = await ask(["infer", "simple", file("sum.json", sum)]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^OUTPUT0 +INT32 +\[1,16\] +0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30$/m);
  });

  it("reads standard input, and says which step it was", async () => {
    const { code, stdout } = await ask(["infer", "accumulate", "-"], { stdin: JSON.stringify(step(1, 20, true)) });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^OUTPUT +INT32 +\[1,1\] +20$/m);
    expect(stdout).toMatch(/^sequence_step +1$/m);
  });

  it("prints the answer itself with --json", async () => {
    const { stdout } = await ask(["infer", "simple", file("sum.json", sum), "--json"]);
    const { outputs } = JSON.parse(stdout) as { outputs: { name: string; data: number[] }[] };
    expect(outputs.find(({ name }) => name === "OUTPUT0")?.data).toEqual(row.map((value) => 2 * value));
  });
});

describe("generate and chat", () => {
  it.each(["generate", "chat"])("%s shows a text, the same whole with --json", async (verb) => {
    const args = [verb, "tale-gpt", story, "--temperature", "0", "--max-tokens", "24"];
    const { code, stdout, stderr } = await ask(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "baton: the answer ended at its most tokens\n" });
    const { stdout: json } = await ask(["--json", ...args]);
    const { text, finish_reason, usage } = JSON.parse(json) as {
      text: string;
      finish_reason: string;
      usage: { completion_tokens: number };
    };
    expect(stdout).toBe(`${text}\n`);
    expect(text).toMatch(/\w/);
    expect(finish_reason).toBe("length");
    expect(usage.completion_tokens).toBe(24);
  });
});

describe("sequences", () => {
  it("are listed, whatever their ids", async () => {
    await steps(2 ** 53 - 1, 1);
    const largest = JSON.stringify(step(77, 1, true)).replace("77", "18446744073709551615");
    await send("accumulate", largest);
    const { code, stdout } = await ask(["sequences", "list", "accumulate"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^SEQUENCE +STATE +STEP/);
    expect(stdout).toMatch(/^9007199254740991 +live +1 /m);
    expect(stdout).toMatch(/^18446744073709551615 +live +1 /m);
    const { stdout: json } = await ask(["sequences", "list", "accumulate", "--json"]);
    expect(json).toContain('"sequence_id":18446744073709551615');
    expect(JSON.parse(json)).toHaveProperty("sequences");
  });

  it("are shown, forked, exported, imported and ended", async () => {
    await steps(10, 20, 22);
    const { stdout: shown } = await ask(["sequences", "show", "accumulate", "10"]);
    expect(shown).toMatch(/^sequence_id +10$/m);
    expect(shown).toMatch(/^step +2$/m);

    const { stdout: forked } = await ask(["sequences", "fork", "accumulate", "10", "--to", "11", "--json"]);
    expect(JSON.parse(forked)).toMatchObject({ sequence_id: 11, step: 2 });
    const { stdout: sumOfFork } = await ask(["infer", "accumulate", "-"], { stdin: JSON.stringify(step(11, 1)) });
    expect(sumOfFork).toMatch(/^OUTPUT .* 43$/m);

    const state = join(folder, "state");
    const written = await ask(["sequences", "export", "accumulate", "10", "--output", state, "--json"]);
    expect(JSON.parse(written.stdout)).toEqual({ bytes: readFileSync(state).length, file: state });
    const { code } = await ask(["sequences", "import", "accumulate", "12", state]);
    expect(code).toBe(0);
    const { stdout: sumOfCopy } = await ask(["infer", "accumulate", "-"], { stdin: JSON.stringify(step(12, 2)) });
    expect(sumOfCopy).toMatch(/^OUTPUT .* 44$/m);

    const { stdout: ended } = await ask(["sequences", "end", "accumulate", "10", "--json"]);
    expect(JSON.parse(ended)).toMatchObject({ sequence_id: 10, step: 2 });
    expect((await ask(["sequences", "show", "accumulate", "10"])).code).toBe(3);
  });

  it("are rewound to the last step, and to no other without a history", async () => {
    await steps(20, 1, 2);
    expect((await ask(["sequences", "rewind", "accumulate", "20", "--step", "2"])).code).toBe(0);
    const { code, stderr } = await ask(["sequences", "rewind", "accumulate", "20", "--step", "1"]);
    expect(code).toBe(4);
    expect(stderr).toContain("(checkpoint_gone)");
  });

  it("have strings for ids, of digits, too", async () => {
    for (const id of ["30", "a name/with a slash"]) await send("bytes-memory", JSON.stringify(beginning(id)));
    const { stdout } = await ask(["sequences", "show", "bytes-memory", "a name/with a slash"]);
    expect(stdout).toMatch(/^sequence_id +a name\/with a slash$/m);
    expect((await ask(["sequences", "show", "bytes-memory", "30"])).code).toBe(3);
    const forked = await ask(["sequences", "fork", "bytes-memory", "30", "--to", "31", "--string", "--json"]);
    expect(JSON.parse(forked.stdout)).toMatchObject({ sequence_id: "31" });
  });
});

describe("fleet", () => {
  it("shows workers and models", async () => {
    const { code, stdout } = await ask(["fleet"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^worker-1\S* +\S+ +\d+ +\d{4}-\S+ +.*\bsimple\b/m);
    expect(stdout).toMatch(/^accumulate +1 +1 +0 +0 +\d+ +0$/m);
    expect(JSON.parse((await ask(["fleet", "--json"])).stdout)).toHaveProperty("workers");
  });
});

describe("exit codes", () => {
  it.each([
    [["infer", "nothing", "-"], "unknown_model"],
    [["generate", "nothing", "Hello"], "unknown_model"],
    [["chat", "nothing", "Hello"], "model_not_found"],
    [["sequences", "list", "nothing"], "unknown_model"],
    [["sequences", "show", "accumulate", "404"], "sequence_unknown"],
  ])("is 3 for what is not there: %s", async (args, code) => {
    const ended = await ask(args, { stdin: "{}" });
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(ended.stderr).toMatch(new RegExp(`^baton: .*\\(${code}\\)\n$`));
  });

  it.each([
    ["no JSON", ["infer", "accumulate", "-"], "{"],
    ["a step without a sequence", ["infer", "accumulate", "-"], JSON.stringify(step(99, 1))],
    ["a request without inputs", ["infer", "simple", "-"], JSON.stringify({ inputs: [] })],
    ["a parameter out of range", ["generate", "tale-gpt", "Hello", "--temperature", "-1"], ""],
    ["too many tokens", ["chat", "tale-gpt", "Hello", "--max-tokens", "999999999"], ""],
    ["a state that is none", ["sequences", "import", "accumulate", "1"], "no state"],
    // Only a worker, which has the tokenizer, can know this.
    ["a prompt of too many tokens", ["generate", "tale-gpt", "word ".repeat(3_000)], ""],
  ])("is 4 for %s", async (_, args, stdin) => {
    const { code, stdout, stderr } = await ask(args, { stdin });
    expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
    expect(stderr).toMatch(/^baton: .*\(\w+\)\n$/);
  });

  it("is 5 where nothing listens, and says so once", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    for (const args of [
      ["generate", "tale-gpt", "Hello"],
      ["fleet", "--watch"],
    ]) {
      const ended = await baton(args, { url });
      expect(ended).toMatchObject({ code: 5, stdout: "" });
      expect(ended.stderr).toBe(`baton: cannot reach ${url}: nothing listens there (ECONNREFUSED)\n`);
    }
  });

  it("is 5 for answers of the 500s, and for what is no gateway", async () => {
    const server = createServer((request, response) => {
      const isPage = request.url === "/v2/fleet";
      response.writeHead(isPage ? 200 : 503, { "content-type": "text/html" }).end("<p>Hello");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      expect(await baton(["models"], { url })).toMatchObject({ code: 5, stderr: "baton: the answer had status 503\n" });
      expect(await baton(["fleet"], { url })).toMatchObject({
        code: 5,
        stderr: `baton: ${url} answered, but not in JSON: is it a gateway of Baton?\n`,
      });
    } finally {
      server.close();
    }
  });

  it.each([
    [[], "Usage: baton"],
    [["nonsense", "list"], "unknown command 'nonsense'"],
    [["models", "--nonsense"], "unknown option '--nonsense'"],
    [["infer", "simple", "/no/such/file"], "cannot read /no/such/file (ENOENT)"],
    [["models", "--url", "http://me:secret@localhost"], "without user, password"],
    [["models", "--key", "two words"], "--key must be printable ASCII"],
  ])("is 2 for wrong arguments: %s", async (args, said) => {
    const { code, stdout, stderr } = await ask(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(said);
    expect(stderr).not.toMatch(/secret|two words|\n\s+at /);
  });
});

describe("the environment", () => {
  it("names the gateway and the key; options win", async () => {
    const asked: unknown[] = [];
    const server = createServer(({ url, headers }, response) => {
      asked.push([url, headers.authorization]);
      response.writeHead(200, { "content-type": "application/json" }).end("[]");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      await baton(["models"], { url: `${url}/under/`, env: { BATON_API_KEY: "one" } });
      await baton(["models", "--url", url, "--key", "two"], {
        url: "http://nowhere.invalid",
        env: { BATON_API_KEY: "one" },
      });
      await baton(["models"], { url });
    } finally {
      server.close();
    }
    expect(asked).toEqual([
      ["/under/v2/repository/index", "Bearer one"],
      ["/v2/repository/index", "Bearer two"],
      ["/v2/repository/index", undefined],
    ]);
  });

  it("is refused where it names no gateway", async () => {
    const { code, stderr } = await baton(["models"], { url: "ftp://example.com" });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "baton: BATON_URL must be an address such as http://127.0.0.1:8000, not 'ftp://example.com'\n",
    });
  });
});

describe("help", () => {
  it("goes to standard output, for the program and for each verb", async () => {
    for (const args of [["help"], ["chat", "--help"]]) {
      const { code, stdout, stderr } = await baton(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/^Usage: baton/);
      expect(stdout).toContain("--json");
    }
  });
});
