import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { UnusableError } from "#shared/exit.js";
import { FileSink } from "./sink.js";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "baton-sink-"))));
afterAll(() => rmSync(folder, { recursive: true }));

const write = (sink: FileSink, text: string) =>
  new Promise<string | number>((resolve) => {
    sink.write(Buffer.from(text), (error, written) => resolve(error?.code ?? written));
  });

it("a file is appended to, and opened anew while a write is under way", async () => {
  const path = join(folder, "file");
  const sink = FileSink.open(path);
  expect(await write(sink, "a\n")).toBe(2);
  renameSync(path, `${path}.1`);
  const under = write(sink, "b\n");
  sink.reopen();
  sink.reopen();
  expect([await under, await write(sink, "c\n")]).toEqual([2, 2]);
  expect([readFileSync(`${path}.1`, "utf8"), readFileSync(path, "utf8")]).toEqual(["a\nb\n", "c\n"]);
});

it("a pipe takes whole lines until it is full, and never waits", async () => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  expect(() => FileSink.open(path)).toThrow(UnusableError);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const sink = FileSink.open(path);
  const text = `${"x".repeat(999)}\n`.repeat(100);
  const written = Number(await write(sink, text));
  expect(written).toBeLessThan(text.length);
  expect(written % 1_000).toBe(0);
  expect(await write(sink, text)).toBe("EAGAIN");
  const buffer = Buffer.alloc(text.length);
  expect(readSync(reader, buffer)).toBe(written);
  expect(await write(sink, "last\n")).toBe(5);
  closeSync(reader);
});

it("a full disk is an error of each write", async () => {
  expect(await write(FileSink.open("/dev/full"), "a\n")).toBe("ENOSPC");
});
