/**
 * Each check runs on a small tree with one planted fault: the check names that fault and no other.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

/** Plain JavaScript, whose types the compiler does not know here. */
const { order }: { order: readonly string[] } = await import(String(new URL("./order.mjs", import.meta.url)));
const program = join(import.meta.dirname, "main.mjs");
const checkout = join(import.meta.dirname, "../..");
let root = "";

/** A tree without a fault: every folder of the order, with a README and a file. */
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "baton-house-"));
  for (const folder of order) {
    put(`${folder}/README.md`, "# A folder\n");
    put(`${folder}/file.ts`, "/** A file. */\nexport const value = 1;\n");
  }
});

afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function faults(): string[] {
  const { status, stderr } = spawnSync(process.execPath, [program, root], { encoding: "utf8" });
  const lines =
    stderr
      .split("\n\n")[0]
      ?.split("\n")
      .filter((line) => line !== "") ?? [];
  expect(status).toBe(lines.length > 0 ? 1 : 0);
  return lines;
}

const importing = (path: string) => `/** A file. */\nimport { value } from "${path}";\n\nexport const other = value;\n`;

describe("the checks of the house", () => {
  it("find nothing where there is nothing", () => {
    put("gateway/http/other.ts", importing("#shared/file.js"));
    put("gateway/app.ts", importing("./http/file.js"));
    expect(faults()).toEqual([]);
  });

  it("refuse an import that runs up the order", () => {
    put("gateway/http/other.ts", importing("../doors/openai/file.js"));
    expect(faults()).toEqual([
      "gateway/http/other.ts imports gateway/doors/openai/file.ts, but gateway/http is lower than gateway/doors/openai",
    ]);
  });

  it("refuse a transport at or below the service, and a path that no endpoint declares", () => {
    put(
      "gateway/service/other.ts",
      `/** A file. */\nimport type { Context } from "hono";\n\nexport type C = Context;\n`,
    );
    put("gateway/formats/other.ts", `/** A file. */\nexport { createServer } from "node:http";\n`);
    put("gateway/admission/other.ts", `/** A file. */\nexport const late = () => import("node:http2");\n`);
    put("gateway/stream/other.ts", `/** A file. */\nimport "@grpc/grpc-js";\n`);
    put("shared/other.ts", `/** A file. */\nexport { WebSocket } from "ws";\n`);
    put("gateway/doors/openai/other.ts", `/** A file. */\nexport const add = (router) => router.add("/v1/x", {});\n`);
    put("gateway/doors/openai/third.ts", `/** A file. */\nexport const add = (app) => app.get("/v1/y", () => {});\n`);
    const transport = (path: string, name: string) =>
      `${path} imports ${name}, but gateway/service and below know no transport`;
    expect(faults()).toEqual([
      transport("gateway/admission/other.ts", "node:http2"),
      "gateway/doors/openai/other.ts: adds a path that no endpoint declares",
      "gateway/doors/openai/third.ts: adds a path that no endpoint declares",
      transport("gateway/formats/other.ts", "node:http"),
      transport("gateway/service/other.ts", "hono"),
      transport("gateway/stream/other.ts", "@grpc/grpc-js"),
      transport("shared/other.ts", "ws"),
    ]);
  });

  it("refuse the gateway's own transport at the service, which is also an import up the order", () => {
    put("gateway/service/other.ts", importing("../http/file.js"));
    expect(faults()).toEqual([
      "gateway/service/other.ts imports gateway/http/file.ts, but gateway/service is lower than gateway/http",
      "gateway/service/other.ts imports ../http/file.js, but gateway/service and below know no transport",
    ]);
  });

  it("refuse an import of types that runs up the order", () => {
    put(
      "worker/lane/other.ts",
      `/** A file. */\nimport type { Value } from "../streams/file.js";\n\nexport type Other = Value;\n`,
    );
    expect(faults()).toEqual([
      "worker/lane/other.ts imports worker/streams/file.ts, but worker/lane is lower than worker/streams",
    ]);
  });

  it("refuse folders that import each other, where no order is declared, too", () => {
    put("test/a/README.md", "# A\n");
    put("test/b/README.md", "# B\n");
    put("test/a/file.ts", importing("../b/other.js"));
    put("test/b/file.ts", importing("../a/file.js"));
    put("test/b/other.ts", "/** A file. */\nexport const value = 1;\n");
    expect(faults()).toEqual([
      "test/a/file.ts imports test/b/other.ts, but test/b imports from test/a, too",
      "test/b/file.ts imports test/a/file.ts, but test/a imports from test/b, too",
    ]);
  });

  it("refuse a folder that has no place in the order", () => {
    put("gateway/new/README.md", "# New\n");
    put("gateway/new/file.ts", "/** A file. */\nexport const value = 1;\n");
    expect(faults()).toEqual(["gateway/new: has no place in infra/checks/order.mjs"]);
  });

  it("refuse a comment of more than 100 columns, in every language", () => {
    const wide = "word ".repeat(21).trim();
    put("shared/wide.ts", `/** A file. */\nexport const value = 1;\n// ${wide}\n`);
    put("shared/beside.ts", `/** A file. */\nexport const value = 1; // ${wide.slice(0, 80)}\n`);
    put("shared/queue/work/wide.lua", `-- A script.\n-- ${wide}\n`);
    put("shared/queue/work/wide.ts", "/** Its wrapper. */\n");
    put("infra/Dockerfile", `# ${wide}\n`);
    expect(faults()).toEqual([
      "infra/Dockerfile:1: 106 columns, at most 100 are read well",
      "shared/beside.ts:2: 107 columns, at most 100 are read well",
      "shared/queue/work/wide.lua:2: 107 columns, at most 100 are read well",
      "shared/wide.ts:3: 107 columns, at most 100 are read well",
    ]);
  });

  it("refuse Markdown of more than 100 columns, but for rows of tables", () => {
    const wide = "word ".repeat(21).trim();
    put("CHANGES.md", `${wide}\n\n| ${wide} |\n| --- |\n`);
    expect(faults()).toEqual(["CHANGES.md:1: 104 columns, at most 100 are read well"]);
  });

  it("refuse a Lua script without its wrapper", () => {
    put("shared/queue/work/alone.lua", "-- A script.\nreturn 1\n");
    expect(faults()).toEqual(["shared/queue/work/alone.lua: has no wrapper of the same name beside it"]);
  });

  it("refuse a Redis script that reads a key or an argument by its number", () => {
    put("shared/queue/work/numbered.lua", "-- A script.\nreturn {KEYS.ready, KEYS[1],\n  ARGV[2]}\n");
    put("shared/queue/work/numbered.ts", "/** Its wrapper. */\n");
    expect(faults()).toEqual([
      "shared/queue/work/numbered.lua:2: has a number in KEYS[…], and the head has names",
      "shared/queue/work/numbered.lua:3: has a number in ARGV[…], and the head has names",
    ]);
  });

  it("refuse a text that is cut or made by counting bars, outside of the declared records", () => {
    put("shared/queue/work/bars.lua", "-- A script, with 'a|b'.\nlocal a = text:match('^(%d+)|(.*)$')\nreturn a\n");
    put("shared/queue/work/bars.ts", '/** Its wrapper. */\nexport const cut = (text) => text.split("|")[3];\n');
    put("worker/lane/bars.ts", "/** A file. */\nexport const text = (a, b) => `${a}|${b}`;\n");
    put("shared/records/bars.ts", "/** A file. */\nexport const text = (a, b) => `${a}|${b}`;\n");
    put("worker/lane/bars.test.ts", "/** A test. */\nexport const text = (a, b) => `${a}|${b}`;\n");
    expect(faults()).toEqual([
      "shared/queue/work/bars.lua:2: counts the bars of a text, and shared/records names the fields",
      "shared/queue/work/bars.ts:2: counts the bars of a text, and shared/records names the fields",
      "worker/lane/bars.ts:2: counts the bars of a text, and shared/records names the fields",
    ]);
  });

  it("refuse a folder without a README, and a file without a first sentence", () => {
    rmSync(join(root, "gateway/doors/openai/README.md"));
    put("gateway/doors/openai/file.ts", "export const value = 1;\n");
    expect(faults()).toEqual([
      "gateway/doors/openai: has no README.md that says what it is for",
      "gateway/doors/openai/file.ts: does not open with a comment that says what it holds",
    ]);
  });

  it("refuse names of what is not there", () => {
    put("NOTES.md", "See `gateway/gone.ts`, `gateway/file.ts` and [this](shared/gone.md).\n");
    expect(faults()).toEqual([
      "NOTES.md: names gateway/gone.ts, which is not there",
      "NOTES.md: names shared/gone.md, which is not there",
    ]);
  });

  it("refuse a link to a heading that is not there", () => {
    const headings = "# Notes\n\n## A file's `state`\n\n```sh\n# A comment\n```\n\n## Twice\n\n## Twice\n";
    put("docs/notes.md", `${headings}\n[here](#a-files-state), [there](#twice-1), [gone](#twice-2)\n`);
    put("docs/other.md", "[page](notes.md#notes), [code](notes.md#a-comment), [folder](../shared#a-folder)\n");
    put("README.md", "[page](docs/notes.md#twice), [none](docs/gone.md#notes), [public](https://example.com/#notes)\n");
    expect(faults()).toEqual([
      "README.md: names docs/gone.md, which is not there",
      "docs/notes.md: names #twice-2, which is not there",
      "docs/other.md: names notes.md#a-comment, which is not there",
      "docs/other.md: names ../shared#a-folder, which is not there",
    ]);
  });

  it("refuse a folder of more than 24 files, without tests, and a script and its wrapper count as one", () => {
    for (let i = 0; i < 23; i++) put(`worker/lane/part-${i}.ts`, "/** A part. */\nexport const value = 1;\n");
    put("worker/lane/part-0.lua", "-- A script.\n");
    put("worker/lane/part.test.ts", "/** A test. */\n");
    expect(faults()).toEqual([]);
    put("worker/lane/one-more.ts", "/** A part. */\nexport const value = 1;\n");
    expect(faults()).toEqual(["worker/lane: 25 files of source, at most 24"]);
  });

  it("refuse a file of more than 400 lines of code, in every language, without comments and blank lines", () => {
    const lines = "export const a = 1;\n".repeat(399);
    put("worker/lane/long.ts", `/** A file. */\n${lines}\n// A comment.\nexport const b = 1; // the last line\n`);
    const script = `-- A script.\n${"local a\n".repeat(400)}\n-- A comment.\n`;
    put("shared/queue/work/long.lua", script);
    put("shared/queue/work/long.ts", "/** Its wrapper. */\n");
    expect(faults()).toEqual([]);
    put("worker/lane/long.ts", `/** A file. */\n${lines}export const b = 1;\nexport const c = 1;\n`);
    put("worker/lane/long.test.ts", `/** A test. */\n${lines}const b = 1;\nconst c = 1;\n`);
    put("shared/queue/work/long.lua", `${script}return a\n`);
    expect(faults()).toEqual([
      "shared/queue/work/long.lua: 401 lines of code, at most 400",
      "worker/lane/long.test.ts: 401 lines of code, at most 400",
      "worker/lane/long.ts: 401 lines of code, at most 400",
    ]);
  });

  it("refuse a function of more than 100 lines, unless it groups tests", () => {
    const body = "{\n" + "  value += 1;\n".repeat(99) + "}";
    put("worker/lane/long.ts", `/** A file. */\nlet value = 0;\nexport function long() ${body}\n`);
    put(
      "worker/lane/long.test.ts",
      `/** A test. */\nlet value = 0;\ndescribe("it", () => ${body});\nit("is", () => ${body});\n`,
    );
    expect(faults()).toEqual([
      "worker/lane/long.test.ts:104: a function of 101 lines, at most 100",
      "worker/lane/long.ts:3: a function of 101 lines, at most 100",
    ]);
  });

  it("refuse a README of more than 180 lines", () => {
    put("README.md", "line\n".repeat(180));
    expect(faults()).toEqual([]);
    put("README.md", "line\n".repeat(181));
    expect(faults()).toEqual(["README.md: 181 lines, at most 180"]);
  });

  it("refuse the name of a file that is not in the README's folder", () => {
    put("gateway/http/README.md", "# HTTP\n\n`file.ts` comes first, `gone.ts` last.\n");
    expect(faults()).toEqual(["gateway/http/README.md: names gone.ts, which is not there"]);
  });
});

/**
 * The linter checks which half of the queue a program imports; the tests try its rules on a copy.
 */
describe("the linter", () => {
  const lint = (path: string, imported: string) => {
    cpSync(join(checkout, ".oxlintrc.json"), join(root, ".oxlintrc.json"));
    put(path, importing(imported));
    return spawnSync(
      process.execPath,
      [join(checkout, "node_modules/oxlint/bin/oxlint"), "--config", join(root, ".oxlintrc.json"), join(root, path)],
      { cwd: root, encoding: "utf8" },
    );
  };

  it.each([
    ["gateway/planted.ts", "#shared/queue/work/commit.js"],
    ["worker/planted.ts", "#shared/queue/admission/admit.js"],
    ["gateway/planted.ts", "../worker/config.js"],
    ["worker/planted.ts", "../gateway/config.js"],
    ["shared/planted.ts", "../worker/config.js"],
    ["shared/planted.ts", "../cli/program.js"],
    ["cli/planted.ts", "../gateway/config.js"],
    ["cli/verbs/planted.ts", "../../gateway/api/jobs.js"],
    ["cli/verbs/planted.ts", "../../worker/config.js"],
    ["cli/verbs/planted.ts", "#shared/queue/keys.js"],
    ["cli/verbs/planted.ts", "#shared/redis/connect.js"],
    ["console/pages/planted.tsx", "../../gateway/api/jobs.js"],
    ["console/pages/planted.tsx", "#shared/errors.js"],
    ["console/pages/planted.tsx", "node:fs"],
  ])("refuses that %s imports %s", (path, imported) => {
    const { status, stdout } = lint(path, imported);
    expect(stdout).toContain(`'${imported}' import is restricted from being used by a pattern`);
    expect(status).toBe(1);
  });

  it("allows the command line the types of answers", () => {
    const { status, stdout } = lint("cli/verbs/planted.ts", "../../gateway/answers.js");
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.not.stringContaining("restricted") as string });
  });

  it("refuse a setting that the list of names lacks, and a name that nothing reads", () => {
    put(
      "shared/setting-names.ts",
      `/** Names. */\nexport const names = ["BATON_HOST", "BATON_GONE", "BATON_PUBLISH"];\n`,
    );
    put("gateway/other.ts", `/** A file. */\nexport const schema = {\n  BATON_HOST: z.string(),\n  BATON_NEW: z\n};\n`);
    put("test/a/README.md", "# A\n");
    put("test/a/file.ts", `/** A file. */\nexport const full = process.env["BATON_FULL"];\n`);
    put("docker-compose.yml", "ports: ${BATON_PUBLISH:-127.0.0.1}\n");
    put(".env.example", "#BATON_HTTP=\n");
    expect(faults()).toEqual([
      ".env.example: has the setting BATON_HTTP, which shared/setting-names.ts lacks",
      "gateway/other.ts: has the setting BATON_NEW, which shared/setting-names.ts lacks",
      "test/a/file.ts: has the setting BATON_FULL, which shared/setting-names.ts lacks",
      "shared/setting-names.ts: has BATON_GONE, which nothing reads",
    ]);
  });

  it.each([
    ["what", "says what"],
    ["where", "lies where"],
    ["-body, -ever", "says nobody"],
    ["is told, go on", "goes on"],
  ])("refuse prose in which %s is frequent, in comments, tests and Markdown alike", (name, words) => {
    const prose = Array.from(
      { length: 1_000 },
      (_, i) => ` * The worker ${i % 20 === 0 ? words : "reads an entry"} of the lane.`,
    );
    const comment = `/**\n${prose.join("\n")}\n */\nexport const other = 1;\n`;
    put("shared/other.ts", comment);
    put("shared/other.test.ts", comment);
    put("OTHER.md", prose.map((line) => line.slice(3)).join("\n"));
    expect(faults()).toEqual(
      ["Markdown", "comments", "tests"].map(
        (group) =>
          expect.stringMatching(new RegExp(`^${group}: "${name}" stands [\\d.]+ times in 10,000 words`)) as string,
      ),
    );
  });

  it("leave questions, code and links out of the rates of prose", () => {
    const prose = Array.from(
      { length: 1_000 },
      () => "The worker reads `what` it owns in [the lane](what.md). And what is next?",
    );
    put("OTHER.md", prose.join("\n\n"));
    put("what.md", "# A page\n");
    expect(faults()).toEqual([]);
  });
});

describe("the check of roles", () => {
  const rights = (commands: string) => `{ commands: \`\${ofClients} ${commands}\`, keys: "~*" }`;
  const of = (gateway: string, more = "") => {
    const lists = `gateway: ${rights(gateway)}, worker: ${rights("get")}, jobs: ${rights("get")}`;
    put(
      "shared/redis/roles.ts",
      `/** Lists. */\nconst ofClients = "eval";\nconst ofBullMq = "";\nexport const rights = { ${lists} };\n`,
    );
    const subjects = (publish: string) => `{ publish: [${publish}], never: [], subscribe: [] }`;
    put(
      "gateway/subscriptions/nats-roles.ts",
      `/** Lists. */\nexport const natsRights = {\n  gateway: ${subjects('"baton.reply.*"')},\n` +
        `  worker: ${subjects("")},\n  jobs: ${subjects("")},\n};\n`,
    );
    put("shared/queue/keys.ts", "/** Keys. */\nexport const reply = (name) => `baton.reply.${name}`;\n");
    put("shared/redis/first.ts", '/** A read. */\nexport const first = (redis) => redis.get("a");\n');
    const imports = 'import { first } from "#shared/redis/first.js";\n';
    for (const path of ["worker/main.ts", "gateway/doors/jobs/main.ts"]) {
      put(path, `/** A process. */\n${imports}\nexport const main = first;\n`);
    }
    put("gateway/main.ts", `/** A process. */\n${imports}${more}\nexport const main = first;\n`);
  };

  it("refuse a command that the user of a process lacks, in code and in a script, and one that nothing calls", () => {
    of("get");
    expect(faults()).toEqual([]);
    put("shared/queue/work/part.lua", "-- A piece.\nredis.call('XGROUP', 'CREATE', a)\n");
    put("shared/queue/work/new.lua", "-- A script.\n-- include part.lua\nreturn redis.pcall('HGET', 'a', 'b')\n");
    put("shared/queue/work/part.ts", "/** A piece. */\n");
    put("shared/queue/work/new.ts", '/** Its wrapper. */\nexport const later = (redis) => redis.call("LLEN", "b");\n');
    of("get zadd", 'import { later } from "#shared/queue/work/new.js";\nimport type { value } from "./file.js";\n');
    const lacks = "which shared/redis/roles.ts does not give it";
    expect(faults()).toEqual([
      `shared/queue/work/new.lua: the gateway uses hget, ${lacks}`,
      `shared/queue/work/part.lua: the gateway uses xgroup|create, ${lacks}`,
      `shared/queue/work/new.ts: the gateway uses llen, ${lacks}`,
      "shared/redis/roles.ts: the gateway has zadd, which nothing calls",
    ]);
  });

  it("refuse a subject that the user of a process lacks", () => {
    of("get", 'import { ask } from "#shared/nats/ask.js";\n');
    put(
      "shared/nats/ask.ts",
      '/** Asks. */\nimport { reply } from "../queue/keys.js";\n\n' +
        "export const ask = ({ streams, connection }, name) =>\n" +
        "  streams.add(connection.publish(reply(name)), `$JS.API.DIRECT.GET.${name}`);\n",
    );
    const lacks = "which gateway/subscriptions/nats-roles.ts does not give it";
    expect(faults().filter((fault) => !fault.includes("lower than"))).toEqual([
      `shared/nats/ask.ts: the gateway uses $JS.API.STREAM.CREATE.*, ${lacks}`,
      `shared/nats/ask.ts: the gateway uses $JS.API.DIRECT.GET.*, ${lacks}`,
    ]);
  });
});

/** The pages are copied, and the sources are the checkout's. */
describe("the check of generated documents", () => {
  /** A text of each page's generated parts. */
  const pages = {
    "docs/settings.md": "`BATON_LEASE_MS`",
    "docs/configuration.md": "`input.reshape`",
    "docs/metrics.md": "`baton_step_seconds`",
    "docs/errors.md": "`unknown_job`",
    "docs/api.md": "Cancels a job.",
    "ARCHITECTURE.md": "gateway_service",
    "test/README.md": "infra/checks/checks.test.ts",
  };
  const check = (change: (page: string, text: string) => string) => {
    for (const [page, text] of Object.entries(pages)) {
      put(page, change(readFileSync(join(checkout, page), "utf8"), text));
    }
    const program = join(checkout, "infra/docs.mjs");
    const { status, stderr } = spawnSync(process.execPath, [program, "--check", root], { encoding: "utf8" });
    return { status, stderr };
  };

  it("finds nothing in the pages of the checkout", () => {
    expect(check((page) => page)).toEqual({ status: 0, stderr: "" });
  });

  it("names each page of which a part is not current", () => {
    const faults = Object.keys(pages).map(
      (page) => `The parts of ${page} that are made from the code are not current: run \`npm run docs\`\n`,
    );
    expect(check((page, text) => page.replace(text, "planted"))).toEqual({ status: 1, stderr: faults.join("") });
  });
});
