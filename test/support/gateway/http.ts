/** HTTP exchanges with one gateway, byte for byte: nothing is added, retried or undone unseen. */
import { request } from "node:http";
import { connect } from "node:net";
import { gunzipSync, inflateSync } from "node:zlib";
import { expect } from "vitest";
import { errorKinds, usualReason, type ErrorCode } from "#shared/errors.js";
import { inferPath } from "../../fixtures/requests.js";

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** The JSON part of the body, decompressed. */
  json: string;
  /** The binary tensors that follow the JSON part. */
  blocks: Buffer;
}

/** A body as it is, or an object that is sent as JSON. */
export type Body = Buffer | string | object;

/** Uses Node's own client, since `fetch` adds encodings and undoes them by itself. */
export function exchange(
  url: string,
  body: Body = "",
  headers: Record<string, string> = {},
  method = "POST",
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () => {
        let bytes = Buffer.concat(pieces);
        if (response.headers["content-encoding"] === "gzip") bytes = gunzipSync(bytes);
        if (response.headers["content-encoding"] === "deflate") bytes = inflateSync(bytes);
        const length = Number(response.headers["inference-header-content-length"] ?? bytes.length);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
          json: bytes.toString("utf8", 0, length),
          blocks: bytes.subarray(length),
        });
      });
    });
    sent.on("error", reject);
    sent.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  });
}

/**
 * Sends bytes as they are and collects the reply until the connection closes or `enough` is seen.
 */
export function rawExchange(port: number, bytes: string | Buffer, enough?: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      if (enough?.test(text) === true) socket.destroy();
    });
    socket.on("close", () => resolve(text));
    // A sender that was refused often sees the close as a reset after the reply.
    socket.on("error", (error) => (text === "" ? reject(error) : undefined));
  });
}

/**
 * An infer body: the JSON, then the blocks, and the header with the JSON's length where there are
 * blocks.
 */
export function inferBody(
  json: object | string,
  ...blocks: Buffer[]
): { headers: Record<string, string>; body: Buffer } {
  const head = Buffer.from(typeof json === "string" ? json : JSON.stringify(json));
  if (blocks.length === 0) return { headers: {}, body: head };
  return {
    headers: { "inference-header-content-length": String(head.length) },
    body: Buffer.concat([head, ...blocks]),
  };
}

export function postInfer(
  gateway: { readonly url: string },
  model: string,
  json: object | string,
  ...blocks: Buffer[]
): Promise<Answer> {
  const { headers, body } = inferBody(json, ...blocks);
  return exchange(gateway.url + inferPath(model), body, headers);
}

/** Expects the refusal of the v2 protocol that follows from this code and text. */
export function expectRefusal(answer: Answer, code: ErrorCode, text: string): void {
  expect(JSON.parse(answer.json)).toEqual({ error: text, code, reason: usualReason(code) });
  expect(answer.status).toBe(errorKinds[code].status);
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.headers["retry-after"]).toBe(errorKinds[code].retry ? "1" : undefined);
  expect(answer.headers["x-request-id"]).toMatch(/./);
}

/** The error object of a refusal in OpenAI's form. */
export function openAiError({ json }: Answer): Record<string, unknown> {
  return (JSON.parse(json) as { error: Record<string, unknown> }).error;
}
