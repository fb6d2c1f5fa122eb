/**
 * `batch run` as people use it. With BATON_RECORD=1 the test writes the text of the terminal to
 * `cli/recordings/batch-run.txt`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { inferLine, linesOf } from "../support/batches/batches.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";
import { startBaton, type Ended } from "./baton.js";

const TIMEOUT_MS = 120_000;
const LINES = 6_000;

const served = useFleet({ jobs: 1, models: ["simple"] });
const cwd = mkdtempSync(join(tmpdir(), "baton-cli-batch-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const place = (name: string) => join(cwd, name);
const start = (...args: string[]) => startBaton(["batch", "run", ...args], { url: served.url, cwd });
const run = (...args: string[]) => start(...args).ended;
const answered = (name: string) => linesOf(readFileSync(place(name), "utf8"));
const write = (name: string, lines: readonly string[]) => writeFileSync(place(name), `${lines.join("\n")}\n`);

describe("batch run", () => {
  const recording: string[] = [];
  const record = (command: string, { stderr, stdout, code }: Ended) => {
    recording.push(`$ ${command}`, `${stderr}${stdout}`.trimEnd(), `$ echo $?`, String(code));
  };

  it(
    "is interrupted, goes on with the same batch, and fetches the files again after its end",
    async () => {
      write(
        "sums.jsonl",
        Array.from({ length: LINES }, (_, i) => JSON.stringify(inferLine(i))),
      );
      const first = start("sums.jsonl");
      await until(() => /\d %/.test(first.complained()), 60_000);
      first.kill("SIGINT");
      const interrupted = await first.ended;
      expect(interrupted).toMatchObject({ code: 130, stdout: "" });
      expect(interrupted.stderr).toContain("to go on watching: npx baton batch run sums.jsonl");
      record("npx baton batch run sums.jsonl   # and then Ctrl-C", interrupted);
      const { batch, digest } = JSON.parse(readFileSync(place("sums.jsonl.baton.json"), "utf8")) as Record<
        string,
        string
      >;
      expect(batch).toMatch(/^batch_/);
      expect(digest).toMatch(/^sha256:/);

      const second = await run("sums.jsonl");
      record("npx baton batch run sums.jsonl", second);
      expect(second.code).toBe(0);
      expect(second.stderr).toContain(`going on with batch ${batch}`);
      expect(second.stdout).toBe(`batch ${batch}: completed, ${LINES} answered, 0 failed\n`);
      expect(new Set(answered("sums.jsonl.output.jsonl").map((line) => line.custom_id)).size).toBe(LINES);

      rmSync(place("sums.jsonl.output.jsonl"));
      const third = await run("sums.jsonl", "--json", "--output", "again.jsonl");
      expect(third.code).toBe(0);
      expect(JSON.parse(third.stdout)).toMatchObject({ id: batch, object: "batch", status: "completed" });
      expect(answered("again.jsonl")).toHaveLength(LINES);
      if (process.env["BATON_RECORD"] !== undefined) {
        const file = join(root, "cli/recordings/batch-run.txt");
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, `${recording.join("\n")}\n`);
      }
    },
    TIMEOUT_MS,
  );

  it(
    "fails where lines failed, with the lines in a file",
    async () => {
      write("bad.jsonl", [JSON.stringify(inferLine(1)), "{"]);
      const { code, stderr } = await run("bad.jsonl", "--errors", "wrong.jsonl");
      expect(code).toBe(1);
      expect(stderr).toMatch(/baton: 1 of 2 lines failed\n$/);
      expect(answered("wrong.jsonl")).toMatchObject([{ error: { code: "invalid_json", line: 2 } }]);
      expect(answered("bad.jsonl.output.jsonl")).toHaveLength(1);
      write("bad.jsonl", ["{}"]);
      const changed = await run("bad.jsonl");
      expect(changed.code).toBe(2);
      expect(changed.stderr).toContain("has changed since its batch was begun");
    },
    TIMEOUT_MS,
  );

  it(
    "says what it cannot do",
    async () => {
      write("none.jsonl", ["{}"]);
      expect(await run("none.jsonl")).toMatchObject({ code: 2, stdout: "" });
      expect(await run("missing.jsonl")).toMatchObject({ code: 2, stdout: "" });
      expect(await run("none.jsonl", "--endpoint", "/v1/embeddings")).toMatchObject({ code: 4, stdout: "" });
    },
    TIMEOUT_MS,
  );
});
