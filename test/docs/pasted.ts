/** Runs a text of the README as a reader does, by pasting it into a program in the checkout. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../support/fleet/root.js";

/** The port of a gateway of `npm start`. */
const USUAL_PORT = 8000;

/**
 * Everything that the program connects to on the usual port is at `gateway` instead: curl reads
 * that in its configuration, and Node.js in a module that it loads first.
 * @param program what is given the text as its standard input
 * @returns what it has written when it ended by itself
 * @throws Error if it ends with another code than 0, or not at all
 */
export async function runPasted(program: readonly [string, ...string[]], text: string, gateway: string) {
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
    const env = { ...process.env, BATON_URL: undefined, CURL_HOME: folder, NODE_OPTIONS: `--import=${first}` };
    const [command, ...args] = program;
    const running = promisify(execFile)(command, args, { cwd: root, env, timeout: 60_000 });
    running.child.stdin?.end(text);
    return (await running).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
