/**
 * Asks the gateway that this start has started. Its certificate need not name this machine's
 * loopback address, and its authority need not be known here, so with TLS the certificate is not
 * checked: the connection does not leave the machine.
 */
import { request } from "node:https";

/** @param {NodeJS.ProcessEnv} env */
export function ownScheme(env) {
  return (env["BATON_TLS_CERT_FILE"] ?? "") === "" ? "http" : "https";
}

/**
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {number} limitMs
 * @returns {Promise<Response>} the answer, with its body read
 */
export async function askOwnGateway(url, headers, limitMs) {
  const signal = AbortSignal.timeout(limitMs);
  if (!url.startsWith("https:")) {
    const response = await fetch(url, { headers, signal });
    return new Response(await response.arrayBuffer(), { status: response.status });
  }
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, signal, rejectUnauthorized: false }, (answer) => {
      /** @type {Buffer[]} */
      const pieces = [];
      answer.on("data", (piece) => pieces.push(piece));
      answer.on("error", reject);
      answer.on("end", () => resolve(new Response(Buffer.concat(pieces), { status: answer.statusCode ?? 500 })));
    });
    asked.on("error", reject);
    asked.end();
  });
}
