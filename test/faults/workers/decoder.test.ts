/**
 * An LSTM that writes a sentence letter by letter writes the same letters as a bare loop while its
 * workers are killed: each once, and in order.
 */
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { GrpcClient, parameters, type Message } from "../../protocols/grpc/client.js";
import { configWith } from "../../support/fleet/repository.js";
import { root } from "../../support/fleet/root.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { BareLoop, tensorOf } from "../../support/recurrent/bare-loop.js";
import { nth, repeatedly } from "../pace.js";
import { scale } from "../scale.js";

const MODEL = "letter-lstm";
const CLIENTS = 12;
const MOST_LETTERS = 100;
const running = useFleet({
  models: [MODEL],
  // A sentence takes a second, longer than the pause between two kills.
  configs: { [MODEL]: configWith(MODEL, "execute_delay_ms", "20") },
  workers: 3,
  direct: true,
  grpc: true,
});

interface Sentence {
  readonly opening: readonly number[];
  /** The most letters of the answer. */
  readonly length: number;
  readonly letters: readonly number[];
}

const codesOf = (text: string): readonly number[] => [...Buffer.from(text, "ascii")];

/** Writes a sentence to its end, or for so many letters. */
async function written(loop: BareLoop, text: string, length: number): Promise<Sentence> {
  const opening = codesOf(text);
  const letters: number[] = [];
  loop.begin();
  for (let given = opening, left = length, more = true; more;) {
    const { TOKEN, LEFT, MORE } = await loop.step({
      TOKENS: tensorOf("int64", [1, given.length], given),
      LENGTH: tensorOf("int64", [1, 1], [left]),
    });
    given = TOKEN ?? [];
    left = LEFT?.[0] ?? 0;
    more = MORE?.[0] === 1;
    letters.push(...given);
  }
  return { opening, length, letters };
}

const sentences: Sentence[] = [];
beforeAll(async () => {
  const file = join(root, "infra/models", MODEL, "1/model.onnx");
  const loop = await BareLoop.open({ file, states: { H: "H_OUT", C: "C_OUT" } });
  for (const name of ["Mira", "Tomas"]) {
    for (const trait of ["shy", "brave", "hungry"]) {
      for (const kind of ["fox", "owl", "donkey"]) {
        sentences.push(await written(loop, `${name} the ${trait} ${kind}`, MOST_LETTERS));
      }
    }
  }
  sentences.push(await written(loop, "Ada the proud cat", 20), await written(loop, "Ada", 1));
});

interface InferAnswer {
  readonly parameters: Readonly<Record<string, { readonly int64_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

/** A request under a key gets the index of each answer. */
const asking = ({ opening, length }: Sentence, key: string): Message => ({
  model_name: MODEL,
  parameters: parameters({ idempotency_key: key }),
  inputs: [
    { name: "TOKENS", datatype: "INT64", shape: [1, opening.length], contents: { int64_contents: opening } },
    { name: "LENGTH", datatype: "INT64", shape: [1, 1], contents: { int64_contents: [length] } },
  ],
});

async function read(client: GrpcClient, sentence: Sentence, key: string): Promise<void> {
  const stream = client.stream();
  stream.send(asking(sentence, key));
  const messages = await stream.finish();
  expect(messages.map((message) => message["error_message"]).filter((text) => text !== "")).toEqual([]);
  const answers = messages.map((message) => message["infer_response"] as InferAnswer);
  expect(answers.map(({ raw_output_contents: [raw] }) => Number(raw?.readBigInt64LE()))).toEqual(sentence.letters);
  expect(answers.map((answer) => Number(answer.parameters["response_index"]?.int64_param))).toEqual(
    sentence.letters.map((_, at) => at),
  );
}

it("writes sentences in a bare loop, which end by themselves or at the length that was asked for", () => {
  const texts = sentences.map(({ letters }) => String.fromCharCode(...letters));
  expect(texts.slice(0, 18).filter((text) => !/^ lives with [A-Z][a-z]+ [a-z ]+\.\n$/.test(text))).toEqual([]);
  expect(new Set(texts).size).toBeGreaterThan(8);
  expect(texts.slice(18).map((text) => text.length)).toEqual([20, 1]);
});

it(
  "writes the same while its workers are killed",
  async () => {
    const { workers, gateways } = running.fleet;
    const client = new GrpcClient(gateways[0]?.grpc ?? "");
    let over = false;
    let done = 0;
    const isOver = () => over;
    const reader = async (i: number): Promise<void> => {
      for (let round = 0; round === 0 || !isOver(); round++) {
        await read(client, nth(sentences, i + round * 5), `${i}/${round}`);
        done++;
      }
    };
    const kills = repeatedly(scale.workerKills, 700, async (i) => nth(workers, i).restart());
    await Promise.all([kills.finally(() => (over = true)), ...Array.from({ length: CLIENTS }, (_, i) => reader(i))]);
    client.close();
    console.log(`decoder: ${done} sentences, ${scale.workerKills} kills`);
    expect(workers.flatMap(({ lives }) => lives)).toHaveLength(workers.length + scale.workerKills);
  },
  scale.timeoutMs,
);
