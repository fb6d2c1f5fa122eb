/** Generations by ModelStreamInfer, and by events over HTTP, with the same answers. */
import { GrpcClient, parameters, type Message } from "../../protocols/grpc/client.js";
import { parts, type BenchFleet } from "../support/fleet.js";
import { cheap } from "../support/models.js";
import type { Timing } from "../steps/scenarios.js";

export interface TokensCost {
  /** CPU of all servers for a token, in µs. */
  readonly cpuUs: number;
  readonly tokens: number;
  readonly checked: number;
  readonly wrong: number;
}

const STREAMS = 64;
const TOKENS = 256;
const PROMPTS = 16;
const sampling = { max_tokens: TOKENS, temperature: 0, ignore_eos: true };

/** The text of each prompt's answer, of whichever way was first. */
const known = new Map<string, string>();

export async function measureTokens(fleet: BenchFleet, way: "sse" | "grpc", timing: Timing): Promise<TokensCost> {
  const client = new GrpcClient(`127.0.0.1:${fleet.grpcPort}`);
  const ask = way === "sse" ? overSse(fleet.port) : overGrpc(client);
  let [checked, wrong] = [0, 0];
  const over = new AbortController();
  const drive = async (at: number): Promise<void> => {
    for (let i = at; !over.signal.aborted; i++) {
      const prompt = `once upon ${i % PROMPTS}`;
      const text = await ask(prompt);
      checked++;
      if (text === "" || (known.get(prompt) ?? text) !== text) wrong++;
      known.set(prompt, text);
    }
  };
  const cpu = () => {
    const spent = fleet.cpu();
    return parts.reduce((sum, part) => sum + spent[part], 0);
  };
  const driving = Promise.all(Array.from({ length: STREAMS }, (_, i) => drive(i)));
  await pause(timing.warmupMs);
  const [before, since] = [cpu(), checked];
  await pause(timing.measureMs);
  const [spent, answers] = [cpu() - before, checked - since];
  over.abort();
  await driving;
  client.close();
  const tokens = answers * TOKENS;
  return { cpuUs: (spent * 1_000) / tokens, tokens, checked, wrong };
}

function overSse(port: number): (prompt: string) => Promise<string> {
  return async (prompt) => {
    const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${cheap.name}/generate_stream`, {
      method: "POST",
      body: JSON.stringify({ text_input: prompt, ...sampling }),
    });
    const events = (await answer.text()).split("\n\n").filter((event) => event !== "");
    return events.map((event) => (JSON.parse(event.slice(6)) as { text_output: string }).text_output).join("");
  };
}

function overGrpc(client: GrpcClient): (prompt: string) => Promise<string> {
  return async (prompt) => {
    const stream = client.stream();
    stream.send({
      model_name: cheap.name,
      inputs: [
        { name: "text_input", datatype: "BYTES", shape: [1, 1], contents: { bytes_contents: [Buffer.from(prompt)] } },
      ],
      parameters: parameters(sampling),
    });
    return (await stream.finish()).map(textOf).join("");
  };
}

function textOf(message: Message): string {
  const {
    raw_output_contents: [raw],
  } = message["infer_response"] as { raw_output_contents: Buffer[] };
  return raw === undefined ? "" : raw.subarray(4).toString();
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
