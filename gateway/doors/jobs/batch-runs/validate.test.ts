import { expect, it } from "vitest";
import { isMarked, validate } from "./validate.js";

const never = new AbortController().signal;
const line = (id: string) => Buffer.from(`{"custom_id":"${id}"}\n`);

async function* file(...chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

it("counts the requests, and marks the lines whose id an earlier one has", async () => {
  const found = await validate(file(line("a"), Buffer.from("\n"), line("b"), line("a"), Buffer.from("{")), never);
  if (found === undefined || "fault" in found) throw new Error("the file was refused");
  expect(found.total).toBe(4);
  expect([1, 2, 3, 4, 5].filter((number) => isMarked(found.duplicates, number))).toEqual([4]);
});

it("refuses a file with more lines than it may have, without reading on, though all are blank", async () => {
  let taken = 0;
  const blank = async function* () {
    for (; taken < 1_000; taken++) yield Buffer.alloc(100_000, "\n");
  };
  expect(await validate(blank(), never)).toMatchObject({ fault: { code: "too_many_lines" } });
  expect(taken).toBe(20);
});

it("ends where the process does", async () => {
  const ending = new AbortController();
  let taken = 0;
  const endless = async function* () {
    for (;;) {
      if (++taken === 3) ending.abort();
      yield line("a");
    }
  };
  expect(await validate(endless(), ending.signal)).toBeUndefined();
  expect(taken).toBe(3);
});
