/** The gateway's HTTP edge on a free port, with models of every datatype and an `infer` that gives its inputs back. */
import { request } from "node:http";
import { connect } from "node:net";
import { gunzipSync, inflateSync } from "node:zlib";
import { expect } from "vitest";
import type { Infer, InferenceOutcome, InferenceRequest } from "../../gateway/inference.js";
import { buildApp, type AppOptions } from "../../gateway/app.js";
import { directoryOf } from "../../gateway/models.js";
import { startServer, type RunningServer, type ServerOptions } from "../../gateway/server.js";
import { defaultLimits } from "../../gateway/v2/limits.js";
import { datatypeBytes, type Datatype } from "#shared/model/datatype.js";
import { errorKinds, type ErrorCode } from "#shared/errors.js";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";

export const datatypes = Object.keys(datatypeBytes) as Datatype[];

export function servedModel(name: string, model: Partial<ServedModel> = {}): ServedModel {
  const dims = [-1];
  return {
    name,
    version: "1",
    platform: "onnxruntime_onnx",
    maxBatchSize: 0,
    inputs: [{ name: "INPUT0", datatype: "INT32", dims }],
    outputs: [{ name: "OUTPUT0", datatype: "INT32", dims }],
    config: { name },
    digest: "a",
    ...model,
  };
}

export function announcementOf(models: ServedModel[], failed: Announcement["failed"] = []): Announcement {
  return { worker: "w.1", host: "h", pid: 1, startedAt: 0, models, failed };
}

const tensorsOf = (kind: "INPUT" | "OUTPUT", types: readonly Datatype[], dims: number[]): ServedModel["inputs"] =>
  types.map((datatype, index) => ({ name: `${kind}${index}`, datatype, dims }));

/** A model that gives each input back as the output of the same number. */
function echoModel(name: string, types: readonly Datatype[], model: Partial<ServedModel> = {}): ServedModel {
  const dims = [-1];
  return servedModel(name, {
    inputs: tensorsOf("INPUT", types, dims),
    outputs: tensorsOf("OUTPUT", types, dims),
    ...model,
  });
}

const models: ServedModel[] = [
  ...datatypes.map((datatype) => echoModel(`echo-${datatype}`, [datatype])),
  echoModel("all", datatypes),
  echoModel("two", ["INT32", "FP32"]),
  servedModel("batched", {
    maxBatchSize: 4,
    inputs: tensorsOf("INPUT", ["INT32", "INT32"], [3]),
    outputs: tensorsOf("OUTPUT", ["INT32", "INT32"], [3]),
  }),
  echoModel("seq", ["INT32"], {
    maxBatchSize: 8,
    sequence: { maxIdleMs: 1000, corrid: { tensor: "CORRID", datatype: "UINT64" } },
  }),
  echoModel("seq-string", ["INT32"], {
    maxBatchSize: 8,
    sequence: { maxIdleMs: 1000, corrid: { tensor: "CORRID", datatype: "BYTES" } },
  }),
  echoModel("seq-any", ["INT32"], { maxBatchSize: 8, sequence: { maxIdleMs: 1000 } }),
  servedModel("wild", { inputs: [{ name: "INPUT0", datatype: "FP32", dims: [-1, -1] }] }),
  servedModel("one-string", {
    maxBatchSize: 2,
    inputs: [{ name: "INPUT0", datatype: "BYTES", dims: [1] }],
    outputs: [{ name: "OUTPUT0", datatype: "BYTES", dims: [1] }],
  }),
  echoModel("versioned", ["INT32"], { version: "2" }),
  echoModel("versioned", ["INT32"], { version: "10" }),
];

export interface EchoGateway {
  readonly url: string;
  readonly port: number;
  /** What `infer` was given, oldest first. */
  readonly admitted: InferenceRequest[];
  readonly logged: { fields: Readonly<Record<string, unknown>>; line: string }[];
  /** Replaces the echo. */
  answer: Infer | undefined;
  readonly server: RunningServer;
}

export async function startEchoGateway(
  options: Partial<AppOptions> = {},
  accepting = 1,
  server: Partial<ServerOptions> = {},
): Promise<EchoGateway> {
  const directory = directoryOf([announcementOf(models, [{ name: "broken", version: "1", reason: "bad model" }])]);
  const log = (fields: Readonly<Record<string, unknown>>, line: string): void =>
    void gateway.logged.push({ fields, line });
  const app = buildApp({
    directory: () => directory,
    infer: (request) => {
      gateway.admitted.push(request);
      return gateway.answer === undefined ? Promise.resolve(echo(request)) : gateway.answer(request);
    },
    isReady: () => true,
    fleet: () => Promise.resolve({ workers: [], steps: 2n ** 60n }),
    limits: defaultLimits,
    serverName: "baton",
    version: "1.2.3",
    log,
    ...options,
  });
  const running = await startServer(app, { port: 0, host: "127.0.0.1", log, accepting, ...server });
  const gateway: EchoGateway = {
    url: `http://127.0.0.1:${running.port}`,
    port: running.port,
    admitted: [],
    logged: [],
    answer: undefined,
    server: running,
  };
  return gateway;
}

function echo({ inputs, outputs }: InferenceRequest): InferenceOutcome {
  const tensors = inputs.map((tensor) => ({ ...tensor, name: tensor.name.replace("INPUT", "OUTPUT") }));
  return { kind: "result", tensors: tensors.filter(({ name }) => outputs.includes(name)) };
}

/** An infer body: JSON and then the blocks, and the length header where there are any. */
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

/** Sends bytes as they are and collects the reply until the connection closes or `enough` is seen. */
export function rawExchange(port: number, bytes: string | Buffer, enough?: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      if (enough?.test(text) === true) socket.destroy();
    });
    socket.on("close", () => resolve(text));
    // A reset after the reply is how a refused sender often sees the close.
    socket.on("error", (error) => (text === "" ? reject(error) : undefined));
  });
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** The JSON part, decompressed. */
  json: string;
  /** What follows it. */
  blocks: Buffer;
}

/** Node's own client, since fetch adds encodings and undoes them by itself. */
export function exchange(
  url: string,
  body: Buffer | string = "",
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
    sent.end(body);
  });
}

export function postInfer(
  gateway: EchoGateway,
  model: string,
  json: object | string,
  ...blocks: Buffer[]
): Promise<Answer> {
  const { headers, body } = inferBody(json, ...blocks);
  return exchange(`${gateway.url}/v2/models/${model}/infer`, body, headers);
}

/** The whole of a refusal follows from its code and text. */
export function expectRefusal(answer: Answer, code: ErrorCode, text: string): void {
  expect(JSON.parse(answer.json)).toEqual({ error: text, code });
  expect(answer.status).toBe(errorKinds[code].status);
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.headers["retry-after"]).toBe(errorKinds[code].retry ? "1" : undefined);
  expect(answer.headers["x-request-id"]).toMatch(/./);
}
