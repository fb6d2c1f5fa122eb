/**
 * When to stop. One Ctrl-C may arrive twice, since the terminal signals npm and this process and npm passes its own on;
 * so only a signal that comes clearly later is a second one, and means "at once".
 */

import { identify, isAlive, lineage } from "../setup/process-identity.mjs";

/** Two signals closer than this are one. Seen: npm's copy within 10 ms. */
const SAME_SIGNAL_MS = 500;

/** Handlers may be replaced as the start gets further; before anything runs, a signal just ends the process. */
export function watchStopRequests() {
  const handlers = { stop: () => process.exit(130), atOnce: () => process.exit(130) };
  let firstAt;
  const request = () => {
    firstAt ??= performance.now();
    handlers.stop();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (firstAt !== undefined && performance.now() - firstAt > SAME_SIGNAL_MS) handlers.atOnce();
      else request();
    });
  }
  watchNpm(request);
  // The terminal may be gone (SIGHUP, `| head`): lines for it are lost, the fleet is not.
  process.stdout.on("error", () => {});
  process.stderr.on("error", () => {});
  return handlers;
}

/** An npm that was killed outright passes nothing on, and nobody would be left whom a person could stop. */
function watchNpm(request) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const npm = { pid: npmPid() };
  npm.identity = identify(npm.pid);
  const timer = setInterval(() => {
    if (isAlive(npm)) return;
    clearInterval(timer);
    request();
  }, 500);
  timer.unref();
}

/** npm runs a script through a shell, and some shells put themselves out of the way. */
function npmPid() {
  const { name, parent } = lineage(process.ppid);
  return /^-?(ba|da|z|k|a)?sh$/.test(name) ? parent : process.ppid;
}
