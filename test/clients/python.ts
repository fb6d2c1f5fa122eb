/** Finds and runs clients for Python, if they are installed: Triton's, and the library of gRPC. */
import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../support/fleet/root.js";

/** TRITONCLIENT may name the client's folder. */
const env = { ...process.env, PYTHONPATH: process.env["TRITONCLIENT"] ?? "" };

function pythonWith(module: string): string | undefined {
  return ["/usr/bin/python3", "python3"].find((python) => {
    try {
      execFileSync(python, ["-c", `import ${module}`], {
        env,
        stdio: "ignore",
      });
      return true;
    } catch {
      return false;
    }
  });
}

/** A Python that can import Triton's client; undefined if there is none. */
export const pythonWithClient = pythonWith("tritonclient.http");

/** The same for the library of gRPC. */
export const pythonWithGrpc = pythonWith("grpc");

/** @returns the output of a program that uses the client */
export async function runPythonText(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(pythonWithClient ?? "", ["-c", program], { env });
  return stdout;
}

/**
 * @param script in this folder
 * @param target host and port of a gateway
 * @returns the program's output
 */
export async function runPython(script: string, target: string, python = pythonWithClient): Promise<string> {
  const file = join(root, "test/clients", script);
  const { stdout } = await promisify(execFile)(python ?? "", [file, target], { env });
  return stdout;
}
