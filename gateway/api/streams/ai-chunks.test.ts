import { describe, expect, it } from "vitest";
import type { TokenRecord } from "#shared/contract/generation.js";
import { delta, failedRecord, finalRecord, record } from "../../../test/fixtures/token-records.js";
import { recordOf } from "../../stream/records.js";
import { chunkWriter, type ChunkForm } from "./ai-chunks.js";

/** The chunks of records of the request `r`. */
function chunks(form: ChunkForm, ...records: TokenRecord[]): unknown[] {
  const write = chunkWriter(form, "r");
  return records.flatMap(
    (one) => JSON.parse(`[${write(recordOf(one.index, JSON.stringify(one)))}]`) as readonly unknown[],
  );
}

const answer = [
  record(0, delta('a "b"')),
  record(1, delta("")),
  record(2, delta("\n", { logprobs: [] })),
  finalRecord(3, 4, delta("é", { finish_reason: "length" })),
];

describe("the chunks of the AI SDK", () => {
  const begun = [{ type: "start", messageId: "r" }, { type: "start-step" }, { type: "text-start", id: "0" }];
  const text = (some: string) => ({ type: "text-delta", id: "0", delta: some });
  const ended = [{ type: "text-end", id: "0" }, { type: "finish-step" }];

  it("begin with record 0, and end with the last", () => {
    const finish = { type: "finish", finishReason: "length" };
    expect(chunks("ai-sdk", ...answer)).toEqual([...begun, text('a "b"'), text("\n"), text("é"), ...ended, finish]);
    expect(chunks("ai-sdk", finalRecord(0, 0))).toEqual([...begun, ...ended, { type: "finish" }]);
  });

  it("say why there is no more", () => {
    expect(chunks("ai-sdk", failedRecord(1, "poison_request", "it ended three workers"))).toEqual([
      { type: "error", errorText: "it ended three workers" },
    ]);
    const cancelled = { code: "cancelled", message: "the client did" } as const;
    expect(chunks("ai-sdk", { ...record(1), final: true, reason: "cancelled", error: cancelled })).toEqual([
      { type: "abort", reason: "the client did" },
    ]);
  });
});

describe("the events of AG-UI", () => {
  const begun = [
    { type: "RUN_STARTED", threadId: "r", runId: "r" },
    { type: "TEXT_MESSAGE_START", messageId: "r", role: "assistant" },
  ];
  const text = (some: string) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "r", delta: some });

  it("begin with record 0, and end with the last", () => {
    expect(chunks("ag-ui", ...answer)).toEqual([
      ...begun,
      text('a "b"'),
      text("\n"),
      text("é"),
      { type: "TEXT_MESSAGE_END", messageId: "r" },
      { type: "RUN_FINISHED", threadId: "r", runId: "r", finishReason: "length" },
    ]);
  });

  it("say why there is no more", () => {
    expect(chunks("ag-ui", failedRecord(1, "poison_request", "it ended three workers"))).toEqual([
      { type: "RUN_ERROR", threadId: "r", runId: "r", code: "poison_request", message: "it ended three workers" },
    ]);
  });
});

it.each(["ai-sdk", "ag-ui"] as const)("of choice 0 alone are told as %s", (form) => {
  const duet = (index: number) => record(index, delta("x", { index: 1 }));
  expect(chunks(form, duet(1))).toEqual([]);
  const both = record(1, delta("x", { index: 1 }), delta("a"));
  expect(chunks(form, both)).toEqual(chunks(form, record(1, delta("a"))));
});
