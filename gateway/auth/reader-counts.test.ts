import { describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { budgetOf } from "./owner/limits.js";
import { ReaderCounts } from "./reader-counts.js";

/** @param most of the key and of the tenant; undefined: no limit */
const owner = (keyId: string | undefined, ofKey?: number, ofTenant?: number) => ({
  tenant: "acme",
  keyId,
  budget: budgetOf(
    { id: keyId ?? "", limits: { open_readers: ofKey } },
    { id: "acme", limits: { open_readers: ofTenant } },
    undefined,
  ),
});

function opening() {
  const counts = new ReaderCounts();
  const open = (one: ReturnType<typeof owner>) => {
    try {
      return { close: counts.take(one) };
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      return { error };
    }
  };
  return { counts, open };
}

describe("the open readers of a key and of a tenant", () => {
  it("are as many as the limit, and a reader that closes makes room", () => {
    const { counts, open } = opening();
    const key = owner("k1", 2);
    const [first] = [open(key), open(key)];
    const { error } = open(key);
    expect([error?.code, error?.message, error?.limited]).toEqual([
      "stream_limit",
      "the API key may have 2 open readers at a gateway (open_readers)",
      { limit: "open_readers", scope: "key" },
    ]);
    expect([counts.of("k:k1"), counts.of("t:acme")]).toEqual([2, 2]);
    first?.close?.();
    first?.close?.();
    expect([counts.of("k:k1"), counts.of("t:acme")]).toEqual([1, 1]);
    expect(open(key).error).toBeUndefined();
  });

  it("count for the tenant with all of its keys, and a refused reader counts nowhere", () => {
    const { counts, open } = opening();
    open(owner("k1", 2, 1));
    const { error } = open(owner("k2", 2, 1));
    expect([error?.message, error?.limited?.scope]).toEqual([
      "the tenant may have 1 open readers at a gateway (open_readers)",
      "tenant",
    ]);
    expect([counts.of("k:k2"), counts.of("t:acme")]).toEqual([0, 1]);
  });

  it("count without a limit, too, so that a later limit finds them", () => {
    const { open } = opening();
    const closes = [open(owner("k1")), open(owner("k1"))].map(({ close }) => close);
    expect(open(owner("k1", 2)).error?.code).toBe("stream_limit");
    for (const close of closes) close?.();
    expect(open(owner("k1", 2)).error).toBeUndefined();
  });

  it("are none if the limit is 0", () => {
    expect(opening().open(owner("k1", 0)).error?.code).toBe("stream_limit");
  });
});
