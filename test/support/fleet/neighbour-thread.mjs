/**
 * Asks the model `simple` again and again, one request at a time. This thread has no other work, so
 * the measured times are the fleet's.
 */
import { Agent, request } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** @type {{ urls: string[], headers: Record<string, string> }} */
const { urls, headers } = workerData;
const parent = parentPort;
if (parent === null) throw new Error("this file is for a worker thread");
const PAUSE_MS = 5;
const agent = new Agent({ keepAlive: true });
/** @type {import("./neighbour.js").Asked[]} */
let asked = [];
const stopping = new AbortController();
parent.on("message", (/** @type {"tell" | "stop"} */ what) => {
  if (what === "stop") stopping.abort();
  parent.postMessage(asked, []);
  asked = [];
});

/**
 * @param {number} value which the model adds to itself
 * @returns {Promise<string>} "200" for the right answer; else another status, the wrong answer, or
 * the error
 */
function ask(value) {
  const tensor = (/** @type {string} */ name) => {
    return { name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(value) };
  };
  const body = JSON.stringify({ inputs: [tensor("INPUT0"), tensor("INPUT1")] });
  const url = `${urls[value % urls.length]}/v2/models/simple/infer`;
  return new Promise((resolve) => {
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (/** @type {string} */ piece) => (text += piece));
      response.on("end", () => {
        const right = response.statusCode !== 200 || JSON.parse(text).outputs[0].data[0] === 2 * value;
        resolve(right ? String(response.statusCode) : `a wrong answer: ${text}`);
      });
    });
    sent.on("error", (error) => resolve(String(error)));
    sent.end(body);
  });
}

for (let value = 1; !stopping.signal.aborted; value++) {
  const since = performance.now();
  const said = await ask(value);
  asked.push({ said, ms: performance.now() - since });
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
agent.destroy();
