/**
 * `generate` and `chat`: ask a language model, and show its answer token by token. The request runs
 * in the background and its records are read beside it, so neither a broken connection nor a
 * gateway's death costs a token. A person who leaves ends the request.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import type { TokenRecord } from "#shared/contract/generation.js";
import { segment } from "../client/address.js";
import { statusOf } from "../client/errors.js";
import { jsonOf, type Answer, type Gateway } from "../client/gateway.js";
import { readRecords } from "../client/records.js";
import { exitCodes, exitOfStatus, Failure } from "../terminal/exit.js";
import { integer, number } from "./options.js";
import type { OpenSession, Session } from "./session.js";

interface Options {
  readonly maxTokens?: number;
  readonly temperature?: number;
}

/** What is sent to the gateway. */
interface Prompt {
  readonly model: string;
  readonly path: string;
  readonly body: object;
}

/** How long a command that is to end takes to end its request as well. */
const GOODBYE_MS = 2_000;

export function addGenerate(program: Command, open: OpenSession): void {
  const verb = (
    name: string,
    description: string,
    promptOf: (model: string, text: string, sampling: object) => Prompt,
  ) =>
    program
      .command(name)
      .description(description)
      .argument("<model>")
      .argument("<text>")
      .option("--max-tokens <n>", "the most tokens that the answer may have", integer)
      .option("--temperature <x>", "0 takes the likeliest token always", number)
      .action(async (model: string, text: string, { maxTokens, temperature }: Options, command: Command) => {
        await generate(open(command), promptOf(model, text, { max_tokens: maxTokens, temperature }));
      });

  verb(
    "generate",
    "let a language model go on with a text, and show the tokens as they come",
    (model, text, sampling) => ({
      model,
      path: `/v2/models/${segment(model)}/generate`,
      body: { text_input: text, ...sampling },
    }),
  );
  verb(
    "chat",
    "ask a language model with a chat template, and show the tokens as they come",
    (model, text, sampling) => ({
      model,
      path: "/v1/chat/completions",
      body: { model, messages: [{ role: "user", content: text }], ...sampling },
    }),
  );
}

async function generate({ gateway, terminal, signal }: Session, { model, path, body }: Prompt): Promise<void> {
  const submission = submit(gateway, path, body);
  let isOver = false;
  try {
    const answer = await unlessAborted(submission, signal);
    const id = idOf(answer);
    if (id === undefined) {
      // A tensor model that takes a text answers at once.
      isOver = true;
      const text = jsonOf(answer, gateway);
      if (terminal.json) terminal.document(text);
      else terminal.print([text]);
      return;
    }
    const collected = new Collected(id, model);
    for await (const record of readRecords(gateway, id)) {
      const text = collected.add(record);
      if (!terminal.json) terminal.write(text);
    }
    isOver = true;
    const failure = collected.failure();
    if (terminal.json) terminal.document(JSON.stringify(collected));
    else if (failure === undefined || collected.text !== "") terminal.write("\n");
    if (failure !== undefined) throw failure;
    if (collected.finish_reason === "length") terminal.note("the answer ended at its most tokens");
  } finally {
    if (!isOver) await Promise.race([cancel(gateway, submission), pause(GOODBYE_MS)]);
  }
}

/**
 * Submits the request. This goes on when the command is to end: without the answer, which has the
 * request's id, it could not end the request.
 */
function submit(gateway: Gateway, path: string, body: object): Promise<Answer> {
  const headers = { "content-type": "application/json", prefer: "respond-async" };
  const question = { method: "POST", headers, body: JSON.stringify(body) } as const;
  return gateway.change(path, question, new AbortController().signal);
}

function idOf({ status, headers }: Answer): string | undefined {
  return status === 202 ? (headers.get("baton-request-id") ?? undefined) : undefined;
}

async function cancel(gateway: Gateway, submission: Promise<Answer>): Promise<void> {
  try {
    const id = idOf(await submission);
    if (id === undefined) return;
    const path = `/v2/requests/${encodeURIComponent(id)}`;
    await gateway.ask(path, { method: "DELETE" }, AbortSignal.timeout(GOODBYE_MS));
    // Where nobody reads the results, nobody wants to know this either.
    const { reason } = gateway.signal as { reason: unknown };
    if (reason instanceof Failure && reason.exit === exitCodes.interrupted) {
      gateway.note(`request ${id} was cancelled`);
    }
  } catch {
    // It was not admitted, has ended by itself, or will when it is done.
  }
}

/** @throws the signal's reason, as soon as it is aborted */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Failure), { once: true });
  });
  return Promise.race([work, aborted]);
}

/** An answer as its records add up to it; this is what `--json` prints. */
export class Collected {
  readonly id: string;
  readonly model: string;
  text = "";
  finish_reason: string | null = null;
  usage: TokenRecord["usage"] | null = null;
  error: { readonly code: string; readonly message: string } | null = null;

  constructor(id: string, model: string) {
    this.id = id;
    this.model = model;
  }

  /** @returns the text that the record adds */
  add({ choices, final, reason, usage, error }: TokenRecord): string {
    const [choice] = choices;
    const text = choice?.text ?? "";
    this.text += text;
    this.finish_reason = choice?.finish_reason ?? this.finish_reason;
    this.usage = usage ?? this.usage;
    if (final === true && reason !== "finished") {
      this.error = error ?? { code: reason ?? "error", message: "the request did not come to its end" };
    }
    return text;
  }

  /** Why the answer has no end; undefined where it has. */
  failure(): Failure | undefined {
    if (this.error === null) return undefined;
    const { code, message } = this.error;
    // A worker refuses what a gateway cannot check, such as a prompt that is too long in tokens.
    const isRefusal = code !== "cancelled" && exitOfStatus(statusOf(code)) === exitCodes.refused;
    return new Failure(isRefusal ? exitCodes.refused : exitCodes.failed, `${message} (${code})`);
  }
}
