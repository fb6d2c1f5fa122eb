/**
 * The command line, `baton <verb>`: an HTTP client of a gateway. Exits with the verb's exit code.
 * At Ctrl-C the verb first ends its requests.
 */
import { createRequire } from "node:module";
import { CommanderError, type Command } from "commander";
import { JsonError } from "#shared/json/error.js";
import { readAddress } from "./client/address.js";
import { Gateway } from "./client/gateway.js";
import { buildProgram, type GeneralOptions } from "./program.js";
import { exitCodes, Failure, type ExitCode } from "./terminal/exit.js";
import { Terminal } from "./terminal/terminal.js";
import type { Session } from "./verbs/session.js";

const { version } = createRequire(import.meta.url)("#package.json") as { version: string };
const { argv, env, stdout, stderr } = process;

/**
 * Errors that say that the reader of the output is gone, as after `| head`: EPIPE from a pipe,
 * ECONNRESET from a socket with unread data, EIO from a closed terminal. The command ends without
 * an error.
 */
const NOBODY_READS: ReadonlySet<string> = new Set(["EPIPE", "ECONNRESET", "EIO"]);

const ending = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    // A second signal ends the process at once.
    if (ending.signal.aborted) process.exit(exitCodes.interrupted);
    ending.abort(new Failure(exitCodes.interrupted, "interrupted"));
  });
}
stdout.on("error", (error: NodeJS.ErrnoException) => {
  const { code = error.message } = error;
  const why = `cannot write standard output (${code})`;
  ending.abort(NOBODY_READS.has(code) ? new Failure(exitCodes.done, "") : new Failure(exitCodes.failed, why));
});
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
    await written();
    ending.signal.throwIfAborted();
    return exitCodes.done;
  } catch (thrown) {
    const error: unknown = ending.signal.aborted ? ending.signal.reason : thrown;
    // Commander has printed the error already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    const failure = error instanceof Failure ? error : unreadable(error);
    if (failure === undefined) throw error;
    if (failure.message !== "") new Terminal({ stdout, stderr, json: false, env }).problem(failure.message);
    return failure.exit;
  }
}

/**
 * A parse error that arrives here comes from the gateway's answer, because all other readers of
 * JSON report their own errors.
 */
function unreadable(error: unknown): Failure | undefined {
  if (!(error instanceof SyntaxError || error instanceof JsonError)) return undefined;
  return new Failure(exitCodes.unreachable, `the gateway's answer cannot be read: ${error.message}`);
}

/** Resolves after all output is written, or after writing has failed and aborted `ending`. */
function written(): Promise<void> {
  return new Promise((resolve) => stdout.write("", () => setImmediate(resolve)));
}

const exit = await run();
await written();
process.exit(exit);
