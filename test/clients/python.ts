/** Finds and runs Triton's client for Python, if the client is installed. */
import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../support/fleet/root.js";

/** TRITONCLIENT may name the client's folder. */
const path = process.env["TRITONCLIENT"] ?? "";

/** A Python that can import the client; undefined if there is none. */
export const pythonWithClient = ["/usr/bin/python3", "python3"].find((python) => {
  try {
    execFileSync(python, ["-c", "import tritonclient.http"], {
      env: { ...process.env, PYTHONPATH: path },
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
});

/** @returns the output of a program that uses the client */
export async function runPythonText(program: string): Promise<string> {
  const env = { ...process.env, PYTHONPATH: path };
  const { stdout } = await promisify(execFile)(pythonWithClient ?? "", ["-c", program], { env });
  return stdout;
}

/**
 * @param script in this folder
 * @param url of a gateway
 * @returns the program's output
 */
export async function runPython(script: string, url: string): Promise<string> {
  const file = join(root, "test/clients", script);
  const { stdout } = await promisify(execFile)(pythonWithClient ?? "", [file, new URL(url).host]);
  return stdout;
}
