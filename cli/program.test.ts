import { CommanderError } from "commander";
import { expect, it } from "vitest";
import { buildProgram } from "./program.js";

async function complaintAbout(args: readonly string[]): Promise<string> {
  let said = "";
  const open = () => {
    throw new Error("the arguments were taken");
  };
  const program = buildProgram("1.2.3", open, (text) => {
    said += text;
  });
  await expect(program.parseAsync(args, { from: "user" })).rejects.toBeInstanceOf(CommanderError);
  return said;
}

it.each([
  ["nonsense", "unknown command 'nonsense'", "baton"],
  ["generat", "unknown command 'generat' (Did you mean generate?)", "baton"],
  ["sequences nonsense", "unknown command 'nonsense'", "baton sequences"],
  ["webhooks list", "unknown command 'webhooks'", "baton"],
  ["models --nonsense", "unknown option '--nonsense'", "baton models"],
  ["models too many", "too many arguments for 'models'. Expected 0 arguments but got 2.", "baton models"],
  ["infer simple", "missing required argument 'file'", "baton infer"],
  [
    "generate m text --max-tokens many",
    "option '--max-tokens <n>' argument 'many' is invalid. It must be an integer of at least 1.",
    "baton generate",
  ],
  [
    "chat m text --temperature hot",
    "option '--temperature <x>' argument 'hot' is invalid. It must be a number.",
    "baton chat",
  ],
  [
    "jobs submit m --infer a --chat b",
    "option '--infer <file>' cannot be used with option '--chat <file>'",
    "baton jobs submit",
  ],
  [
    "jobs submit m --infer a --delay 5s --run-at 2026-12-01T09:00:00Z",
    "option '--delay <duration>' cannot be used with option '--run-at <time>'",
    "baton jobs submit",
  ],
  [
    "jobs submit m --infer a --delay soon",
    "option '--delay <duration>' argument 'soon' is invalid. It must be a duration such as 250ms, 5s, 90m or 1h30m.",
    "baton jobs submit",
  ],
  [
    "jobs submit m --infer a --idempotency-key schlüssel",
    "option '--idempotency-key <key>' argument 'schlüssel' is invalid. It must be 1 to 255 printable ASCII characters.",
    "baton jobs submit",
  ],
  [
    "jobs list --label a=1 --label a=2",
    "option '--label <name=value>' argument 'a=2' is invalid. The label a is given twice.",
    "baton jobs list",
  ],
  ["sequences rewind m 1", "required option '--step <n>' not specified", "baton sequences rewind"],
  ["sequences fork m 1", "required option '--to <id>' not specified", "baton sequences fork"],
  [
    "completion powershell",
    "command-argument value 'powershell' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    "baton completion",
  ],
])("'%s' is answered with one sentence, and with the way to the help", async (args, sentence, verb) => {
  expect(await complaintAbout(args.split(" "))).toBe(`baton: ${sentence}\nSee: ${verb} --help\n`);
});

it.each([
  ["", "baton"],
  ["sequences", "baton sequences"],
])("'%s' alone shows the help", async (args, verb) => {
  expect(await complaintAbout(args.split(" ").filter((word) => word !== ""))).toMatch(new RegExp(`^Usage: ${verb} `));
});
