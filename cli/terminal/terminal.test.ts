import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { Terminal } from "./terminal.js";

/** Returns the text on standard output and on standard error, as on a screen or in a file. */
function printed(isTTY: boolean, json: boolean, print: (terminal: Terminal) => void): [string, string] {
  const streams = [new PassThrough(), new PassThrough()].map((one) => Object.assign(one, { isTTY }));
  const [stdout, stderr] = streams as unknown as [NodeJS.WriteStream, NodeJS.WriteStream];
  print(new Terminal({ stdout, stderr, json, env: { NO_COLOR: "1" } }));
  return [String(stdout.read() ?? ""), String(stderr.read() ?? "")];
}

// U+009B starts the same sequences as ESC and [ together.
const evil = "\u001b]0;x\u0007\u009b2J";
const said = (terminal: Terminal) => {
  terminal.write(`${evil}\n`);
  terminal.print([evil]);
  terminal.document(JSON.stringify({ text: evil }));
  terminal.note(evil);
  terminal.problem(evil);
};

it("nothing that a model or a gateway says steers a screen, in JSON neither", () => {
  const [out, errors] = printed(true, true, said);
  // oxlint-disable-next-line no-control-regex -- these are what must not reach a terminal
  expect(out + errors).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  expect(JSON.parse(out.split("\n")[2] ?? "")).toEqual({ text: evil });
});

it("a file gets the results as they are", () => {
  const [out] = printed(false, true, said);
  expect(out).toBe(`${evil}\n${evil}\n${JSON.stringify({ text: evil })}\n`);
});
