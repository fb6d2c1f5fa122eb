/**
 * `generate` and `chat`: send a prompt to a language model, and show the answer token by token. The
 * request runs in the background, and the command reads its records separately. So neither a broken
 * connection nor a gateway's death loses a token. At Ctrl-C the command cancels the request.
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

/** A request to a gateway. */
interface Prompt {
  readonly model: string;
  readonly path: string;
  readonly body: object;
}

/** How long an interrupted command waits for the cancellation of its request. */
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
      // A tensor model with a text input answers at once.
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
 * Submits the request. An interrupt does not abort the submission, because the answer has the
 * request's id, and the command needs the id to cancel the request.
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
    // If the reader of the results is gone, this message has no reader either.
    const { reason } = gateway.signal as { reason: unknown };
    if (reason instanceof Failure && reason.exit === exitCodes.interrupted) {
      gateway.note(`request ${id} was cancelled`);
    }
  } catch {
    // The gateway did not admit the request, or the request has ended, or it ends on its own.
  }
}

/** @throws the signal's reason, as soon as the signal aborts */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Failure), { once: true });
  });
  return Promise.race([work, aborted]);
}

/** The sum of an answer's records, which `--json` prints. */
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

  /** Why the answer is incomplete; undefined if it is complete. */
  failure(): Failure | undefined {
    if (this.error === null) return undefined;
    const { code, message } = this.error;
    // A worker refuses requests that a gateway cannot check, for example a prompt with too many
    // tokens.
    const isRefusal = code !== "cancelled" && exitOfStatus(statusOf(code)) === exitCodes.refused;
    return new Failure(isRefusal ? exitCodes.refused : exitCodes.failed, `${message} (${code})`);
  }
}
