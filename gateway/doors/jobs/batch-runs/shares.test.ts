import { expect, it } from "vitest";
import { Shares } from "./shares.js";

const never = new AbortController().signal;

it("gives one that is alone all slots, and others the next ones until each has as many", async () => {
  const shares = new Shares(4);
  const got: string[] = [];
  const take = (name: string) => void shares.take(name, never).then(() => got.push(name));
  for (let i = 0; i < 8; i++) take("a");
  await Promise.resolve();
  expect(got).toEqual(["a", "a", "a", "a"]);
  for (let i = 0; i < 3; i++) take("b");
  for (let i = 0; i < 4; i++) shares.release("a");
  await Promise.resolve();
  await Promise.resolve();
  expect(got.slice(4).sort()).toEqual(["a", "a", "b", "b"]);
});

it("lets one that is to end go without a slot, and gives nothing to it later", async () => {
  const shares = new Shares(1);
  expect(await shares.take("a", never)).toBe(true);
  const ending = new AbortController();
  const left = shares.take("a", ending.signal);
  const next = shares.take("b", never);
  ending.abort();
  expect(await left).toBe(false);
  expect(await shares.take("a", ending.signal)).toBe(false);
  shares.release("a");
  expect(await next).toBe(true);
});
