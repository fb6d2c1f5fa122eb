/** One function for each operation, which returns the outcome that the test compares. */
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import { Caller } from "../../gateway/service/caller.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { GenerationRequest } from "../../gateway/admission/inference.js";
import { answerInfer } from "../../gateway/formats/kserve/answer.js";
import { RequestReader } from "../../gateway/formats/kserve/request-reader.js";
import { TensorPrinter } from "../../gateway/formats/kserve/tensor-printer.js";
import { parseCompletionRequest } from "../../gateway/formats/openai/completions.js";
import { answerWhole } from "../../gateway/formats/openai/whole-answer.js";
import type { Reply } from "../../gateway/formats/reply.js";
import type { Parts } from "../../gateway/service/open.js";
import type { Services } from "../../gateway/service/services.js";
import { readUntil, until } from "../support/until.js";

interface Floor extends Services {
  readonly parts: Parts;
}

const caller = Caller.of(anyOwner(DEFAULT_TENANT));
const MODEL = { model: "simple", version: undefined };
const never = new AbortController().signal;

/** The model adds both inputs. */
const addition = (value: number) => ({
  inputs: ["INPUT0", "INPUT1"].map((name) => ({
    name,
    datatype: "INT32",
    shape: [1, 16],
    data: Array.from({ length: 16 }, () => value),
  })),
});
const bytesOf = (body: object) => Buffer.from(JSON.stringify(body));

export const operations: Readonly<Record<string, (floor: Floor) => Promise<unknown>>> = {
  async inference({ fleet, inference, parts }) {
    const { limits } = parts;
    const model = fleet.directory.find("simple", undefined);
    const others = fleet.directory.others(model);
    const body = bytesOf(addition(3));
    const reading = { path: "infer", headerLength: undefined, model, others, limits } as const;
    const read = await new RequestReader().read(body, body.length, reading, () => undefined);
    const call = {
      tenant: caller.tenant,
      model,
      version: undefined,
      others,
      inference,
      limits,
      printer: new TensorPrinter(),
    };
    const background = { idempotencyKey: undefined, background: false, gone: () => never };
    return firstOutput(await answerInfer({ ...call, ...background }, read));
  },

  /** Relays a generation, and compares its text with the text of the same request in one piece. */
  async stream({ fleet, inference, requests }) {
    const parsed = completion(fleet, { max_tokens: 24 });
    const { id } = await inference.generate(generationOf(parsed));
    const cursor = await requests.open(caller, id, 0);
    const records = [];
    for await (const page of cursor.pages(never)) records.push(...page);
    const relayed = records.map(({ json }) => (JSON.parse(json) as TextRecord).choices[0]?.text ?? "").join("");
    const whole = await answerWhole(completion(fleet, { max_tokens: 24 }), inference, never);
    const { choices } = jsonOf<TextRecord>(whole);
    return {
      isInOrder: records.every(({ index }, i) => index === i),
      isOver: records.at(-1)?.final,
      isWhole: relayed !== "" && relayed === choices[0]?.text,
    };
  },

  async cancel({ fleet, inference, requests }) {
    const { id } = await inference.generate(generationOf(completion(fleet, { max_tokens: 400, ignore_eos: true })));
    const cursor = await requests.open(caller, id, 0);
    const records = [];
    for await (const page of cursor.pages(never)) {
      if (records.length === 0) await requests.cancel(caller, id);
      records.push(...page.map(({ json }) => JSON.parse(json) as TextRecord));
    }
    return { reason: records.at(-1)?.reason, state: (await requests.status(caller, id)).state };
  },

  async job(floor) {
    return resultOf(floor, await submit(floor, { infer: addition(4) }));
  },

  async dueJob(floor) {
    return resultOf(floor, await submit(floor, { infer: addition(5), delay: 500 }));
  },

  async schedule(floor) {
    const { schedules } = floor;
    const target = await schedules.target(caller, MODEL);
    const read = await schedules.read(target, bytesOf({ every: 1_000, limit: 1, job: { infer: addition(6) } }));
    const { schedule } = await schedules.make(caller, target, read, { key: undefined, trace: undefined });
    const newest = { limit: 1, after: undefined };
    const [job] = await readUntil(
      async () => (await floor.jobs.list(caller, newest, { schedule: schedule.id })).data,
      ({ length }) => length > 0,
    );
    if (job === undefined) throw new Error("the schedule made no job");
    return resultOf(floor, job.id);
  },

  async batch({ batches, files }) {
    const endpoint = "/v2/models/simple/infer";
    const lines = [addition(7), addition(8)].map((body, i) =>
      JSON.stringify({ custom_id: `line-${i}`, method: "POST", url: endpoint, body }),
    );
    const terms = { name: "lines.jsonl", purpose: "batch" } as const;
    const { file } = await files.write(caller, piecesOf(lines.join("\n")), () => Promise.resolve(terms));
    const window = { window: "24h", windowMs: 86_400_000, metadata: null };
    const order = { endpoint, inputFile: file.id, ...window };
    const { batch } = await batches.make(caller, order, undefined);
    const { output_file_id: output } = await readUntil(
      () => batches.find(caller, batch.id),
      ({ status }) => status === "completed",
    );
    const { content } = await files.read(caller, output ?? "");
    let text = "";
    for await (const piece of content) text += piece.toString();
    const answers = text.trim().split("\n");
    const sums = answers.map((line) => (JSON.parse(line) as AnsweredLine).response.body.outputs[0]?.data[0] ?? 0);
    return sums.sort((one, other) => one - other);
  },
};

/** The members that the operations read, of a record and of an answer. */
interface TextRecord {
  readonly choices: readonly { readonly text: string }[];
  readonly reason?: string;
}

interface Outputs {
  readonly outputs: readonly { readonly data: readonly number[] }[];
}

interface AnsweredLine {
  readonly response: { readonly body: Outputs };
}

function completion({ directory }: Floor["fleet"], body: JsonObject) {
  const terms = { tenant: caller.tenant, deadlineMs: 60_000, background: false };
  return parseCompletionRequest({ model: "tale-gpt", prompt: "Once", seed: 3, ...body }, directory, undefined, terms);
}

function generationOf({ generations: [request] }: ReturnType<typeof completion>): GenerationRequest {
  if (request === undefined) throw new Error("the request has no generation");
  return request;
}

/** @returns the job's id */
async function submit({ jobs }: Floor, body: object): Promise<string> {
  const sent = { receive: (read: (bytes: Buffer) => Promise<never>) => read(bytesOf(body)), stillWanted() {} };
  return (await jobs.submit(caller, MODEL, sent)).id;
}

/** Waits for the job's end. */
async function resultOf({ jobs }: Floor, id: string): Promise<unknown> {
  await until(async () => (JSON.parse((await jobs.view(caller, id)).view) as { ended_at: unknown }).ended_at !== null);
  const end = await jobs.result(caller, id);
  return end.kind === "tensors" ? end.tensors[0]?.data.readInt32LE() : end;
}

function jsonOf<Body>({ body }: Reply): Body {
  return JSON.parse(body.join("")) as Body;
}

function firstOutput(reply: Reply): unknown {
  return jsonOf<Outputs>(reply).outputs[0]?.data[0];
}

async function* piecesOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
