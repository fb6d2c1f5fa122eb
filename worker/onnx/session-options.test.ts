import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { input, model, node, output } from "../../infra/tutorial/onnx-file.mjs";
import { onCpu } from "./providers.js";
import { openSession } from "./runtime.js";
import { configuredOptions, executionMode, tritonBoolean } from "./session-options.js";
import { makeTurns } from "./turns.js";

const withParameters = (parameters: Readonly<Record<string, string>>) =>
  configuredOptions(3, 1, {
    parameters: Object.fromEntries(Object.entries(parameters).map(([key, value]) => [key, { string_value: value }])),
  });

describe("the options of a session", () => {
  it("are the runtime's own without parameters", () => {
    expect(withParameters({})).toEqual({
      intraOpThreads: 3,
      interOpThreads: 0,
      executionMode: undefined,
      memoryArena: undefined,
      memoryPattern: undefined,
      graphOptimization: "all",
    });
  });

  it("are those of the parameters", () => {
    const options = withParameters({
      intra_op_thread_count: "2",
      inter_op_thread_count: "4",
      execution_mode: "1",
      enable_mem_arena: "0",
      enable_mem_pattern: "false",
    });
    expect(options).toMatchObject({
      intraOpThreads: 2,
      interOpThreads: 4,
      executionMode: "parallel",
      memoryArena: false,
      memoryPattern: false,
    });
  });

  it.each([
    [-1, "basic"],
    [0, "all"],
    [1, "extended"],
    [2, "disabled"],
  ])("optimise the graph, with level %i, as '%s'", (level, words) => {
    const optimization = { priority: "PRIORITY_DEFAULT", graph: { level } } as const;
    const options = { gather_kernel_buffer_threshold: 0, eager_batching: false, ...optimization };
    expect(configuredOptions(1, 1, { parameters: {}, optimization: options }).graphOptimization).toBe(words);
  });

  it.each([
    ["true", true],
    ["On", true],
    ["1", true],
    ["FALSE", false],
    ["off", false],
    ["0", false],
    ["yes", undefined],
    ["", undefined],
  ])("read %j as the boolean %j", (text, value) => expect(tritonBoolean(text)).toBe(value));

  it.each([
    ["0", "sequential"],
    ["1", "parallel"],
    ["2", undefined],
    ["", undefined],
  ])("read %j as the mode %j", (text, mode) => expect(executionMode(text)).toBe(mode));
});

const graph = model("add", [
  input("X", ["n"]),
  output("Y", ["n"]),
  node("Neg", ["X"], ["A"]),
  node("Abs", ["X"], ["B"]),
  node("Add", ["A", "B"], ["Y"]),
]);

/** Opens a session, and counts the threads that the runtime adds to this process for it. */
async function threadsOf(parameters: Readonly<Record<string, string>>): Promise<number> {
  const threads = () => readdirSync("/proc/self/task").length;
  const base = { modelFile: graph, placement: onCpu, turns: makeTurns() };
  // The first session of a process also starts threads that all sessions share.
  await (await openSession({ ...base, ...withParameters({ intra_op_thread_count: "1" }) })).release();
  const before = threads();
  const session = await openSession({ ...base, ...withParameters({ intra_op_thread_count: "1", ...parameters }) });
  const added = threads() - before;
  await session.release();
  return added;
}

describe("a session", () => {
  it("has the threads that its parameters say", async () => {
    expect(await threadsOf({})).toBe(0);
    const two = { inter_op_thread_count: "3", enable_mem_arena: "false", enable_mem_pattern: "false" };
    expect(await threadsOf({ ...two, execution_mode: "0" })).toBe(0);
    expect(await threadsOf({ ...two, execution_mode: "1" })).toBeGreaterThanOrEqual(2);
  });
});
