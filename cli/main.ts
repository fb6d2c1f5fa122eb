/**
 * The command line: `baton <verb>`. It is a client of a gateway like any other, over HTTP alone. It
 * ends with the exit code of its verb; at Ctrl-C the verb ends first what it has begun.
 */
import { createRequire } from "node:module";
import { CommanderError, type Command } from "commander";
import { readAddress } from "./client/address.js";
import { Gateway } from "./client/gateway.js";
import { buildProgram, type GeneralOptions } from "./program.js";
import { exitCodes, Failure, type ExitCode } from "./terminal/exit.js";
import { Terminal } from "./terminal/terminal.js";
import type { Session } from "./verbs/session.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };
const { argv, env, stdout, stderr } = process;

const ending = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    // A second one does not wait for the verb's goodbye.
    if (ending.signal.aborted) process.exit(exitCodes.interrupted);
    ending.abort(new Failure(exitCodes.interrupted, "interrupted"));
  });
}
// Nobody reads on, as after `| head`: that is no failure, and nobody is told.
stdout.on("error", () => ending.abort(new Failure(exitCodes.done, "")));
stderr.on("error", () => undefined);

function openSession(command: Command): Session {
  const { url, key, json = false } = command.optsWithGlobals<GeneralOptions>();
  const terminal = new Terminal({ stdout, stderr, json, env });
  const { signal } = ending;
  const gateway = new Gateway({ ...readAddress({ url, key }, env), signal, note: (text) => terminal.note(text) });
  return { gateway, terminal, signal };
}

async function run(): Promise<ExitCode> {
  try {
    await buildProgram(version, openSession, (text) => void stderr.write(text)).parseAsync(argv);
    return exitCodes.done;
  } catch (thrown) {
    const error: unknown = ending.signal.aborted ? ending.signal.reason : thrown;
    // Commander has said by itself what is wrong.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    if (!(error instanceof Failure)) throw error;
    if (error.message !== "") new Terminal({ stdout, stderr, json: false, env }).problem(error.message);
    return error.exit;
  }
}

const exit = await run();
stdout.write("", () => process.exit(exit));
