/**
 * Asks a gateway every 5 ms whether it lives, and reads its memory. This thread has no other work,
 * so only the gateway delays the answers.
 */
import { readFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** @type {{ url: string, pid: number }} */
const { url, pid } = workerData;
const parent = parentPort;
if (parent === null) throw new Error("this file is for a worker thread");
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
/** @type {number[]} */
const tookMs = [];
let peakBytes = 0;
const stopping = new AbortController();
parent.once("message", () => stopping.abort());

/** @returns {Promise<void>} */
const live = () =>
  new Promise((resolve, reject) => {
    const asked = get(`${url}/v2/health/live`, { agent }, (response) => {
      response.resume().on("end", () => (response.statusCode === 200 ? resolve() : reject(new Error("not live"))));
    });
    // A gateway that was busy for seconds closes the connection as idle, so the thread asks again.
    asked.on("error", (error) => ("code" in error && error.code === "ECONNRESET" ? resolve(live()) : reject(error)));
  });
const rssBytes = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

await live();
parent.postMessage({ idleBytes: rssBytes() }, []);
while (!stopping.signal.aborted) {
  const begin = performance.now();
  await live();
  tookMs.push(performance.now() - begin);
  peakBytes = Math.max(peakBytes, rssBytes());
  await new Promise((resolve) => setTimeout(resolve, 5));
}
parent.postMessage({ tookMs, peakBytes }, []);
agent.destroy();
