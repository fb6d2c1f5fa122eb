import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, input } from "./ask.js";
import { bytesElement, inferPath } from "../fixtures/requests.js";

/** Strings, and whether ONNX Runtime for Node passes each unchanged to a model. */
const kinds: readonly (readonly [what: string, bytes: Buffer, carried: boolean])[] = [
  ["an empty string", Buffer.from(""), true],
  ["plain ASCII", Buffer.from("plain"), true],
  ["control characters", Buffer.from("\u0001\u001f\u007f\u0080"), true],
  ["characters of two to four bytes", Buffer.from("grün € \u{1f30a}"), true],
  ["a byte order mark", Buffer.from("\ufeffa"), true],
  ["noncharacters", Buffer.from("\uffff\ufffe"), true],
  ["U+FFFD itself", Buffer.from("a\ufffdb"), true],
  ["a megabyte", Buffer.from("é".repeat(524_288)), true],
  ["a NUL inside", Buffer.from("a\0b"), false],
  ["a NUL alone", Buffer.from("\0"), false],
  ["bytes that are no UTF-8", Buffer.from([0x61, 0xff, 0xfe]), false],
  ["a character cut short", Buffer.from([0x61, 0xe2, 0x82]), false],
  ["a surrogate in bytes", Buffer.from([0xed, 0xa0, 0x80]), false],
  ["an overlong NUL", Buffer.from([0xc0, 0x80]), false],
];

const models = ["echo-bytes", "bytes-memory", "bytes-labels", "gen-cheap"];

interface BinaryAnswer {
  readonly status: number;
  readonly error: string | undefined;
  /** The one element of each output, in the order of the request. */
  readonly elements: readonly Buffer[];
}

/** Sends one string as binary data, beside inputs as JSON, and asks for binary outputs. */
async function askBinary(
  url: string,
  model: string,
  name: string,
  element: Buffer,
  others: readonly unknown[] = [],
  parameters: Readonly<Record<string, unknown>> = {},
): Promise<BinaryAnswer> {
  const data = bytesElement(element);
  const tensor = { name, datatype: "BYTES", shape: [1, 1], parameters: { binary_data_size: data.length } };
  const header = JSON.stringify({
    parameters: { ...parameters, binary_data_output: true },
    inputs: [tensor, ...others],
  });
  const response = await fetch(url + inferPath(model), {
    method: "POST",
    headers: { "Inference-Header-Content-Length": String(Buffer.byteLength(header)) },
    body: Buffer.concat([Buffer.from(header), data]),
  });
  const body = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) {
    const { error } = JSON.parse(body.toString("utf8")) as { error: string };
    return { status: response.status, error, elements: [] };
  }
  const elements: Buffer[] = [];
  for (let at = Number(response.headers.get("Inference-Header-Content-Length")); at < body.length;) {
    const end = at + 4 + body.readUInt32LE(at);
    elements.push(body.subarray(at + 4, end));
    at = end;
  }
  return { status: 200, error: undefined, elements };
}

describe("strings", () => {
  const served = useFleet({ models });

  function step(sequence: string, flags: { start?: boolean }, text: Buffer, pick = false): Promise<BinaryAnswer> {
    const parameters = { sequence_id: sequence, sequence_start: flags.start ?? false };
    return askBinary(served.url, "bytes-memory", "TEXT", text, [input("PICK", "BOOL", [1, 1], [pick])], parameters);
  }

  it.each(kinds)("%s: a model gets and gives it unchanged, or it is refused by name", async (_, bytes, carried) => {
    const { status, error, elements } = await askBinary(served.url, "echo-bytes", "INPUT", bytes);
    if (carried) {
      expect(error).toBeUndefined();
      expect(elements[0]?.equals(bytes)).toBe(true);
    } else {
      expect(status).toBe(400);
      expect(error).toMatch(
        /string element 0 of inference input 'INPUT' for model 'echo-bytes' (is not UTF-8|holds a)/,
      );
    }
  });

  it.each(kinds)("%s: a sequence remembers it unchanged, or its step is refused", async (what, bytes, carried) => {
    const sequence = `remembers ${what}`;
    await step(sequence, { start: true }, Buffer.from("first"));
    const { status, error } = await step(sequence, {}, bytes);
    expect([status, error]).toEqual(
      carried ? [200, undefined] : [400, expect.stringContaining("input 'TEXT' for model 'bytes-memory'")],
    );
    const { elements } = await step(sequence, {}, Buffer.from("last"));
    expect(elements[0]?.equals(carried ? bytes : Buffer.from("first"))).toBe(true);
  });

  it("in JSON: NUL and half a character are refused, also as part of a batch", async () => {
    const data = (...texts: string[]) => ({ inputs: [input("INPUT", "BYTES", [1, texts.length], texts)] });
    const asked = [data("a", "a\u0000b"), data("a", "\ud800b"), data("a\udc00")];
    const answers = await Promise.all(asked.map((request) => ask(served.url, "echo-bytes", request)));
    expect(answers.map(({ status, error }) => [status, error])).toEqual([
      [400, expect.stringContaining("string element 1 of inference input 'INPUT' for model 'echo-bytes' holds a NUL")],
      [400, expect.stringContaining("The surrogate pair in string is invalid")],
      [400, expect.stringContaining("The surrogate pair in string is invalid")],
    ]);
    const whole = ["\u{1f30a}", "a\ufffd", ""];
    expect((await ask(served.url, "echo-bytes", data(...whole))).outputs["OUTPUT"]).toEqual(whole);
  });

  it("as correlation ids: a model that is told the id gets it unchanged, or the step is refused", async () => {
    for (const id of ["plain", "grün \u{1f30a}", "a\ufffdb", "\u0001"]) {
      const { elements } = await step(id, { start: true }, Buffer.from("x"));
      expect(elements[1]?.toString("utf8")).toBe(id);
    }
    const nul = await step("a\0b", { start: true }, Buffer.from("x"));
    expect([nul.status, nul.error]).toEqual([
      400,
      expect.stringMatching(/the correlation ID for .*'CORRID' of model 'bytes-memory' holds a NUL byte/),
    ]);
    const half = await step("a\ud800", { start: true }, Buffer.from("x"));
    expect([half.status, half.error]).toEqual([
      400,
      expect.stringContaining("The surrogate pair in string is invalid"),
    ]);
  });

  it("that a model makes itself: NUL comes out, and what might have changed is refused by name", async () => {
    const label = (index: number) =>
      ask(served.url, "bytes-labels", { inputs: [input("INDEX", "INT64", [1, 1], [index])] });
    expect((await label(0)).outputs["LABEL"]).toEqual(["plain"]);
    expect((await label(1)).outputs["LABEL"]).toEqual(["a\0b"]);
    // A U+FFFD from the model looks like bytes that are not UTF-8, so Baton refuses both.
    for (const index of [2, 3]) {
      const { status, error, code } = await label(index);
      expect([status, code]).toEqual([500, "model_error"]);
      expect(error).toContain("output 'LABEL' may not be what the model gave");
    }
  });

  it("that a model makes itself for its next step: a NUL fails the step, and the state stays", async () => {
    await step("picks", { start: true }, Buffer.from("first"));
    const { status, error } = await step("picks", {}, Buffer.from("unused"), true);
    expect([status, error]).toEqual([500, expect.stringContaining("'NEXT', whose string 0 holds a NUL byte")]);
    expect((await step("picks", {}, Buffer.from("last"))).elements[0]?.toString()).toBe("first");
  });

  it("for a generator: a NUL is text like any other", async () => {
    const promptTokens = async (prompt: string) => {
      const response = await fetch(`${served.url}/v1/completions`, {
        method: "POST",
        body: JSON.stringify({ model: "gen-cheap", prompt, max_tokens: 1 }),
      });
      const { usage } = (await response.json()) as { usage: { prompt_tokens: number } };
      return usage.prompt_tokens;
    };
    const one = await promptTokens("q");
    expect([await promptTokens("\0"), await promptTokens("q\0q")]).toEqual([one, one + 2]);
  });
});
