/** Runs a text of a page for users as a reader does, pasted into a program in the checkout. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../support/fleet/root.js";

/** The port of a gateway of `npm start`. */
const USUAL_PORT = 8000;

/**
 * Connects the program to `gateway` instead of the usual port: curl reads the address in its
 * configuration, and Node.js in a module that it loads first.
 * @param program that reads the text as its standard input
 * @param more settings of the program
 * @returns the standard output of a program that ended by itself
 * @throws Error if the program ends with another code than 0, or not at all
 */
export async function runPasted(
  program: readonly [string, ...string[]],
  text: string,
  gateway: string,
  more: object = {},
) {
  const { hostname, port } = new URL(gateway);
  const folder = mkdtempSync(join(tmpdir(), "baton-pasted-"));
  try {
    writeFileSync(join(folder, ".curlrc"), `connect-to = "localhost:${USUAL_PORT}:${hostname}:${port}"\n`);
    const first = join(folder, "first.mjs");
    writeFileSync(
      first,
      `import net from "node:net";
       const { connect } = net;
       net.connect = (to, ...rest) => connect(Number(to.port) === ${USUAL_PORT} ? { ...to, port: ${port} } : to, ...rest);`,
    );
    const env = { ...process.env, BATON_URL: undefined, CURL_HOME: folder, NODE_OPTIONS: `--import=${first}`, ...more };
    const [command, ...args] = program;
    const running = promisify(execFile)(command, args, { cwd: root, env, timeout: 60_000 });
    running.child.stdin?.end(text);
    return (await running).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
