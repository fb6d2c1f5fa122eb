/**
 * Bodies of the operations for which the document names only a media type, because their formats
 * parse by themselves: good bodies, and bodies that clients of the protocol expect to be refused.
 */
import * as fc from "fast-check";
import type { Operation } from "./document.js";
import { oddValue } from "./values.js";

/** A body, and the parts of the request that go with the body. */
export interface Sent {
  /** The model of the path, if the body fits only this model. */
  readonly model?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Bodies {
  readonly good: fc.Arbitrary<Sent>;
  readonly wrong: fc.Arbitrary<Sent>;
}

type Json = Readonly<Record<string, unknown>>;
/** Members by name, each with values that make a good body wrong; undefined removes the member. */
type Wrong = Readonly<Record<string, readonly unknown[]>>;

const BOUNDARY = "fuzz-boundary";
const formType = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const sixteen = fc.array(int32, { minLength: 16, maxLength: 16 });
const tensor = (name: string, data: unknown, shape: readonly number[] = [1, 16]) => ({
  name,
  datatype: "INT32",
  shape,
  data,
});
/** Few tokens, so that no generation outlives its test. */
const brief = { max_tokens: fc.integer({ min: 1, max: 4 }), temperature: fc.constantFrom(0, 0.5, 1) };
const prompt = fc.constantFrom("Once", "A cat", "é", "and so");
const optional = (
  members: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  requiredKeys: string[],
): fc.Arbitrary<Json> => fc.record(members, { requiredKeys });

const simple = fc.tuple(sixteen, sixteen).map(([one, other]): Json => ({
  inputs: [tensor("INPUT0", one), tensor("INPUT1", other)],
}));
const step = fc
  .tuple(int32, fc.constantFrom<unknown>("<fresh>", "a", 7, 2 ** 53 - 1), fc.boolean(), fc.boolean())
  .map(([value, id, begins, ends]): Json => ({
    parameters: { sequence_id: id, sequence_start: begins, sequence_end: ends },
    inputs: [tensor("INPUT", [value], [1, 1])],
  }));
const tale = optional(
  { text_input: prompt, ...brief, seed: fc.nat(), stop: fc.constant(["e"]), id: fc.constant("mine") },
  ["text_input", "max_tokens", "temperature"],
);
const openAi = {
  model: fc.constant("tale-gpt"),
  ...brief,
  seed: fc.nat(),
  n: fc.constantFrom(1, 2),
  stream: fc.boolean(),
};
const completion = optional({ prompt, ...openAi }, ["prompt", "model", "max_tokens"]);
const messages = prompt.map((content) => [{ role: "user", content }]);
const chat = optional({ messages, ...openAi }, ["messages", "model", "max_tokens"]);
const jobChat = optional({ messages, ...brief, seed: fc.nat() }, ["messages", "max_tokens"]);
const jobOptions = {
  priority: fc.integer({ min: 1, max: 9 }),
  attempts: fc.integer({ min: 1, max: 3 }),
  delay: fc.integer({ min: 3_600_000, max: 86_400_000 }),
  deadline: fc.integer({ min: 60_000, max: 604_800_000 }),
  result_ttl: fc.integer({ min: 1_000, max: 60_000 }),
  labels: fc.constant({ team: "blue" }),
  webhook: fc.constantFrom<unknown>({ id: "<webhook>" }, { url: "<receiver>", events: ["job.completed"] }),
};
const job = optional({ infer: simple, ...jobOptions }, ["infer"]);
const talkJob = fc
  .tuple(
    optional(jobOptions, []),
    fc.oneof(
      tale.map((generate) => ({ generate })),
      jobChat.map((one) => ({ chat: one })),
    ),
  )
  .map(([options, work]): Json => ({ ...options, ...work }));
/** No run falls into the test. */
const yearly = optional(
  {
    cron: fc.constantFrom("0 0 1 1 *", "30 4 29 2 *"),
    job: simple.map((infer) => ({ infer })),
    timezone: fc.constantFrom("UTC", "Europe/Berlin"),
    limit: fc.integer({ min: 1, max: 1_000_000_000 }),
  },
  ["cron", "job"],
);

const wrongInfer: Wrong = {
  inputs: [undefined, null, 5, "x", {}, [], [5], [{}], [tensor("INPUT0", Array(16).fill(1))], [tensor("NONE", [1])]],
  outputs: [{}, 5, [{ name: "NONE" }], [{}], [{ name: "OUTPUT0", parameters: { binary_data: "yes" } }]],
  parameters: [[], 5, { priority: -1 }, { timeout: "soon" }, { sequence_id: 1.5, sequence_start: true }],
  id: [7, {}, []],
};
const wrongSampling: Wrong = {
  max_tokens: [-1, 0, 1.5, "x", [], {}, true, 1e9],
  temperature: ["hot", -1, [], {}],
  top_p: [2, -1, "x"],
  seed: ["x", 1.5, []],
  stop: [[1], 5, {}],
  unknown_member: [1],
};
const wrongTale: Wrong = { ...wrongSampling, text_input: [undefined, "", 1, {}, ["a", "b"]] };
const wrongTalk: Wrong = {
  ...wrongSampling,
  model: [undefined, 5, "absent", "simple"],
  n: [0, 1.5, "x"],
  stream: ["yes", 1],
};
const wrongChat: Wrong = {
  ...wrongTalk,
  messages: [undefined, "x", [], [{ role: "stranger", content: "x" }], [{}], [5]],
};
const wrongCompletion: Wrong = { ...wrongTalk, prompt: [undefined, 5, {}, ""] };
const wrongJob: Wrong = {
  infer: [undefined, 5, [], {}, { inputs: [] }],
  unknown: [1],
  priority: [0, 10, "high", 1.5],
  attempts: [0, 1e6, "x"],
  delay: [-1, 1e15, "x"],
  run_at: ["tomorrow", 5],
  deadline: [-1, "yesterday", 0],
  backoff: [5, { type: "other" }, { extra: 1 }, { type: "fixed", delay: -1 }],
  result_ttl: [1, "x"],
  labels: ["x", { a: 1 }, { "": "x" }],
  webhook: [{}, 5, { url: "nowhere" }, { url: "http://10.0.0.1/x" }, { id: "wh_none" }],
};
const wrongSchedule: Wrong = {
  job: [undefined, 5, {}, { infer: {} }, { infer: 5, delay: 1 }],
  cron: [undefined, "x", 5, "0 0 30 2 *", "* * * * * *"],
  every: [5_000, 5, "x"],
  timezone: ["Moon", 5],
  start_at: ["x", 5, "2900-01-01T00:00:00Z"],
  end_at: ["2020-01-01T00:00:00Z", 5],
  limit: [0, "x", 1.5],
  other: [1],
};

const inference: Bodies = {
  good: fc.oneof(
    asJson(simple, { model: "simple" }),
    asJson(simple, { model: "simple", headers: { prefer: "respond-async" } }),
    asJson(step, { model: "accumulate" }),
  ),
  wrong: broken(simple, wrongInfer, { model: "simple" }),
};
const generation: Bodies = {
  good: fc.oneof(
    asJson(tale, { model: "tale-gpt" }),
    asJson(tale, { model: "tale-gpt", headers: { prefer: "respond-async" } }),
    asJson(fc.record({ INPUT0: sixteen, INPUT1: sixteen }), { model: "simple" }),
  ),
  wrong: broken(tale, wrongTale, { model: "tale-gpt" }),
};
const byEnd: readonly (readonly [end: string, Bodies])[] = [
  ["/infer", inference],
  ["/generate", generation],
  ["/generate_stream", generation],
  ["/v1/completions", { good: asJson(completion), wrong: broken(completion, wrongCompletion) }],
  ["/v1/chat/completions", { good: asJson(chat), wrong: broken(chat, wrongChat) }],
  [
    "/jobs",
    {
      good: fc.oneof(asJson(job, { model: "simple" }), asJson(talkJob, { model: "tale-gpt" })),
      wrong: broken(job, wrongJob, { model: "simple" }),
    },
  ],
  [
    "/schedules",
    { good: asJson(yearly, { model: "simple" }), wrong: broken(yearly, wrongSchedule, { model: "simple" }) },
  ],
  [
    "/index",
    {
      good: fc.constantFrom({ body: "" }, { body: "{}" }, { body: '{"ready":true}' }, { body: '{"ready":false}' }),
      wrong: fc.constantFrom("yes", 5, [], {}).map((ready) => ({ body: JSON.stringify({ ready }) })),
    },
  ],
  ...["/load", "/unload"].map(
    (end) =>
      [
        end,
        {
          good: fc.constantFrom({ body: "" }, { body: "{}" }, { body: '{"parameters":{}}' }),
          wrong: fc.constantFrom("yes", 5, []).map((parameters) => ({ body: JSON.stringify({ parameters }) })),
        },
      ] as const,
  ),
  [
    "/state",
    {
      good: fc.constant({ body: "<state>" }),
      wrong: fc
        .oneof(fc.string({ unit: "binary" }), fc.constantFrom("<state>x", "{}", "<state><state>"))
        .map((body) => ({ body })),
    },
  ],
  ["/v1/files", { good: form({ purpose: "batch" }), wrong: wrongForms() }],
];

/** @throws Error for an operation whose bodies are unknown here */
export function bodiesOf({ path, name }: Operation): Bodies {
  const known = byEnd.find(([end]) => path.endsWith(end))?.[1];
  if (known === undefined) throw new Error(`there are no bodies for ${name}`);
  return known;
}

/** Bodies that may be good or wrong: a good body with an odd value somewhere, and any JSON. */
export function oddBodies({ good }: Bodies): fc.Arbitrary<Sent> {
  const mutated = fc
    .tuple(good, fc.nat(50), oddValue)
    .map(([sent, at, value]) => ({ ...sent, body: withValue(sent.body, at, value) }));
  return fc.oneof(
    { weight: 3, arbitrary: mutated },
    {
      weight: 1,
      arbitrary: fc.tuple(good, oddValue).map(([sent, value]) => ({ ...sent, body: JSON.stringify(value) })),
    },
  );
}

function asJson(values: fc.Arbitrary<Json>, more: Omit<Sent, "body"> = {}): fc.Arbitrary<Sent> {
  return values.map((value) => ({ ...more, body: JSON.stringify(value) }));
}

function broken(good: fc.Arbitrary<Json>, wrong: Wrong, more: Omit<Sent, "body"> = {}): fc.Arbitrary<Sent> {
  const faults = Object.entries(wrong).flatMap(([name, values]) => values.map((value) => ({ [name]: value })));
  return asJson(
    fc.tuple(good, fc.constantFrom(...faults)).map(([value, fault]) => ({ ...value, ...fault })),
    more,
  );
}

/** Puts a value at one of the places of a JSON text, counted through all its members. */
function withValue(text: string, at: number, value: unknown): string {
  const root = parsed(text);
  if (root === undefined) return JSON.stringify(value);
  const places: (() => void)[] = [];
  const visit = (one: unknown): void => {
    if (typeof one !== "object" || one === null) return;
    for (const [name, member] of Object.entries(one)) {
      places.push(() => Object.assign(one, { [name]: value }));
      visit(member);
    }
  };
  visit(root);
  places[at % Math.max(places.length, 1)]?.();
  return JSON.stringify(root);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function form(fields: Readonly<Record<string, string>>, file: string | undefined = "file"): fc.Arbitrary<Sent> {
  return fc.string({ maxLength: 200 }).map((content) => {
    const parts = Object.entries(fields).map(
      ([name, value]) => `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`,
    );
    if (file !== undefined)
      parts.push(`Content-Disposition: form-data; name="${file}"; filename="a.jsonl"\r\n\r\n${content}`);
    return {
      headers: formType,
      body: `${parts.map((part) => `--${BOUNDARY}\r\n${part}\r\n`).join("")}--${BOUNDARY}--\r\n`,
    };
  });
}

function wrongForms(): fc.Arbitrary<Sent> {
  const good = form({ purpose: "batch" });
  return fc.oneof(
    form({}),
    form({ purpose: "other" }),
    form({ purpose: "batch", other: "x" }),
    form({ purpose: "batch", "expires_after[anchor]": "created_at" }),
    form({ purpose: "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "1" }),
    form({ purpose: "batch" }, "other"),
    form({ purpose: "batch" }, ""),
    good.map(({ body }) => ({ body, headers: { "content-type": "application/json" } })),
    good.map(({ body }) => ({ body, headers: { "content-type": "multipart/form-data" } })),
    good.map(({ body }) => ({ body: body.slice(0, -BOUNDARY.length - 8), headers: formType })),
    fc.string().map((body) => ({ body, headers: formType })),
  );
}
