/** Clients that leave: each client sends a request and disconnects at a moment of its own. */
import { connect } from "node:net";
import type { StreamAsk } from "./ask.js";
import { readEventSource } from "./event-source.js";
import type { Manner } from "./history.js";
import { submissionOf } from "./front-doors.js";

/** With `whole`, the client waits for an answer in one piece. */
export type LeavingManner = Manner | "whole";

function requestOf(ask: StreamAsk, manner: LeavingManner) {
  if (manner !== "whole") return submissionOf(ask, manner);
  const { model, prompt, parameters } = ask;
  return { path: "/v1/completions", headers: {}, body: JSON.stringify({ model, prompt, ...parameters }) };
}

/**
 * Closes the socket in the same tick that writes the request's last byte. Resolves when the socket
 * has closed.
 */
export function sendAndLeave(gateway: string, ask: StreamAsk, manner: LeavingManner): Promise<void> {
  const { hostname, port } = new URL(gateway);
  const { path, headers, body } = requestOf(ask, manner);
  const all = {
    host: hostname,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...headers,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.on("error", () => undefined); // the socket closes either way
    socket.on("close", () => resolve());
    socket.on("connect", () => {
      socket.write(`POST ${path} HTTP/1.1\r\n${head.join("")}\r\n${body}`);
      socket.destroy();
    });
  });
}

export interface Leaving {
  /** The client leaves after this many events; with 0, as soon as the head is there. */
  readonly after: number;
  /** The client's last act while still connected. */
  readonly last?: (id: string) => Promise<unknown>;
}

/** @returns the stream's id, if the client knows the id */
export async function readAndLeave(
  gateway: string,
  ask: StreamAsk,
  manner: "completions" | "generate_stream",
  { after, last }: Leaving,
): Promise<string | undefined> {
  const { path, headers, body } = submissionOf(ask, manner);
  const leaving = new AbortController();
  let id: string | undefined;
  let lastWords: Promise<unknown> = Promise.resolve();
  let seen = 0;
  const leave = () => {
    if (id !== undefined && last !== undefined) lastWords = last(id).finally(() => leaving.abort());
    else leaving.abort();
  };
  await readEventSource({
    url: gateway + path,
    method: "POST",
    headers,
    body,
    signal: leaving.signal,
    onHead(answer) {
      id = String(answer.headers["baton-request-id"]);
      if (after === 0) leave();
    },
    onEvent() {
      if (++seen === after) leave();
      return !leaving.signal.aborted;
    },
  });
  await lastWords;
  return id;
}
