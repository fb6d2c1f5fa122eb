/**
 * HTTP exchanges with one gateway, byte for byte, without added headers, retries or decoding that a
 * test cannot see.
 */
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

/** Bytes or text to send unchanged, or an object to send as JSON. */
export type Body = Buffer | string | object;

/** Uses Node's own client, because `fetch` adds encodings and undoes them by itself. */
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
 * Sends bytes unchanged, and collects the reply until the connection closes or `enough` matches.
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
    // A sender whose request a gateway refuses often gets a reset after the reply, because the
    // gateway closes.
    socket.on("error", (error) => (text === "" ? reject(error) : undefined));
  });
}

/**
 * An infer body: the JSON, then the blocks, and the header with the JSON's length if there are
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
