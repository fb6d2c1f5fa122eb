/** Keeps a guard beside this start for as long as it runs; a guard that was killed is replaced. */
import { fork } from "node:child_process";
import { mkdirSync } from "node:fs";

export function keepGuard(records) {
  mkdirSync(records, { recursive: true });
  let dismissed = false;
  let guard;
  const launch = () => {
    // A session of its own, and no terminal: it has to outlive both.
    guard = fork(new URL("./guard.mjs", import.meta.url), [records, String(process.pid)], {
      detached: true,
      stdio: "ignore",
    });
    guard.once("exit", () => {
      if (!dismissed) setTimeout(launch, 1_000).unref();
    });
  };
  launch();
  return {
    dismiss() {
      dismissed = true;
      guard.kill("SIGKILL");
    },
  };
}
