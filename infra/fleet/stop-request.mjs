/**
 * Decides when to stop. One Ctrl-C may arrive twice, because the terminal signals both npm and this
 * process, and npm forwards its signal. So only a clearly later signal counts as a second signal,
 * which means "at once".
 */
import { identify, isAlive, lineage } from "../setup/process-identity.mjs";

/** Two signals within this time, in ms, count as one. Npm's copy came within 10 ms. */
const SAME_SIGNAL_MS = 500;
const NPM_POLL_MS = 500;

/**
 * @typedef {object} StopHandlers
 * @property {() => void} stop for the first request
 * @property {() => void} atOnce for a signal after it
 */

/**
 * Listens for signals and for npm's death.
 *
 * @returns {StopHandlers} the start may replace both as it gets further; before any process runs, a
 *   signal just ends this process
 */
export function watchStopRequests() {
  /** @type {StopHandlers} */
  const handlers = { stop: () => process.exit(130), atOnce: () => process.exit(130) };
  /** @type {number | undefined} */
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
  // The terminal may close (SIGHUP, `| head`): its lines are lost, but the fleet is not.
  process.stdout.on("error", () => {});
  process.stderr.on("error", () => {});
  return handlers;
}

/**
 * After SIGKILL, npm forwards no signal. The fleet would keep running, and a person would not know
 * which process to stop; so npm's death is a request to stop, too.
 *
 * @param {() => void} request
 */
function watchNpm(request) {
  if (process.env["npm_lifecycle_event"] === undefined) return;
  const pid = npmPid();
  const npm = { pid, identity: identify(pid) };
  const timer = setInterval(() => {
    if (isAlive(npm)) return;
    clearInterval(timer);
    request();
  }, NPM_POLL_MS);
  timer.unref();
}

/**
 * npm runs a script through a shell; some shells replace themselves by the script, other shells
 * stay.
 */
function npmPid() {
  const { name, parent } = lineage(process.ppid);
  return /^-?(ba|da|z|k|a)?sh$/.test(name) ? parent : process.ppid;
}
