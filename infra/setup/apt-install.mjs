/**
 * Installs server packages on Debian and Ubuntu. They would start a system service on the well-known port and at every boot;
 * Baton runs private instances, so what this installs is kept from starting.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { atLeast } from "./broker-kinds.mjs";
import { isExecutable } from "./paths.mjs";
import { lastLines, runCommand } from "./run-command.mjs";
import { step } from "./terminal.mjs";

const APT = "/usr/bin/apt-get";
/** Asked by Debian's package scripts before they start a service; status 101 is "no". */
const POLICY = "/usr/sbin/policy-rc.d";

export function canAptInstall() {
  return process.platform === "linux" && process.getuid() === 0 && isExecutable(APT);
}

/** Resolves with undefined when all is installed, else with what went wrong. `wanted`: [{package, floor}]. */
export async function aptInstall(wanted, log) {
  const names = wanted.map((one) => one.package);
  const apt = (...args) =>
    runCommand(APT, ["-o", "DPkg::Lock::Timeout=120", ...args], {
      log,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" },
    });
  return await step(`Installing ${names.join(" and ")} (apt-get)`, async () => {
    const update = await apt("update", "-q");
    for (const one of wanted) {
      const { output } = await runCommand("/usr/bin/apt-cache", ["policy", one.package], { log });
      const version = /Candidate: (?:\d+:)?(\d+\.\d+)/.exec(output)?.[1];
      if (version === undefined && update.code !== 0) return `apt-get update failed:\n${lastLines(update.output, 3)}`;
      if (version === undefined) return `no apt source has ${one.package}`;
      if (!atLeast(version, one.floor)) return `apt has ${one.package} ${version} only`;
    }
    const holdServices = !existsSync(POLICY);
    if (holdServices) writeFileSync(POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
    try {
      const install = await apt("install", "-y", "-q", "--no-install-recommends", ...names);
      if (install.code !== 0) return `apt-get install failed:\n${lastLines(install.output, 3)}`;
    } finally {
      if (holdServices) rmSync(POLICY, { force: true });
    }
    if (existsSync("/run/systemd/system")) await runCommand("systemctl", ["disable", ...names], { log });
    return undefined;
  });
}
