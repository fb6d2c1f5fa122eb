#!/usr/bin/env node
/**
 * Stands in for `tritonserver` in Triton's own test scripts: it takes the arguments that they give,
 * and starts Baton with one worker, because the scripts check the batches of one server.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = join(import.meta.dirname, "../../..");
/** @type {Record<string, string[]>} */
const options = {};
for (const [, name = "", value = ""] of process.argv.slice(2).map((word) => /^--([^=]+)=(.*)$/.exec(word) ?? [])) {
  (options[name] ??= []).push(value);
}
const repositories = (options["model-repository"] ?? []).map((folder) => resolve(folder));
execFileSync("/usr/bin/python3", [join(import.meta.dirname, "repository.py"), ...repositories], { stdio: "inherit" });

const { PYTHONPATH: _, ...inherited } = process.env;
const home = mkdtempSync(join(tmpdir(), "baton-triton-"));
const env = {
  ...inherited,
  BATON_HOME: home,
  BATON_WORKERS: process.env["BATON_WORKERS"] ?? "1",
  BATON_SERVER_NAME: "triton",
  BATON_MODEL_REPOSITORY: repositories.join(":"),
  BATON_MODEL_CONTROL: options["model-control-mode"]?.[0] ?? "none",
  ...(options["load-model"] && { BATON_LOAD_MODELS: options["load-model"].join(",") }),
  ...(options["grpc-restricted-protocol"] && { BATON_RESTRICTED_APIS: options["grpc-restricted-protocol"].join(";") }),
};
const child = spawn(process.execPath, [join(root, "infra/main.mjs"), "start"], { cwd: root, env, stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill("SIGINT"));
child.on("exit", (code) => {
  rmSync(home, { recursive: true, force: true });
  process.exit(code ?? 1);
});
