/** `sequences …`: show, end, fork, rewind, export and import the sequences of a model. */
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { printJson } from "#shared/json/print.js";
import type { Sequence, Sequences } from "../../gateway/answers.js";
import { segment } from "../client/address.js";
import { readAnswer } from "../client/answers.js";
import { jsonOf, type Answer } from "../client/gateway.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { cells, pairs, shown, table } from "../terminal/text.js";
import { integer, readInput } from "./options.js";
import type { OpenSession, Session } from "./session.js";

interface Options {
  /** Whether to read an id of digits as a string. */
  readonly string?: true;
  readonly step?: number;
  readonly to?: string;
  readonly output?: string;
}

const PAGE = 1_000;

export function addSequences(program: Command, open: OpenSession): void {
  const sequences = program.command("sequences").description("look at sequences, and end, fork, rewind and carry them");

  sequences
    .command("list")
    .description("list the live sequences of a model, in no order")
    .argument("<model>")
    .action(async (model: string, _: object, command: Command) => {
      const session = open(command);
      const found = await listAll(session, model);
      if (session.terminal.json) session.terminal.document(printJson({ sequences: found }));
      else session.terminal.print(listLines(found), { heading: true });
    });

  const onSequence = (name: string, description: string) =>
    sequences
      .command(name)
      .description(description)
      .argument("<model>")
      .argument("<id>", "the sequence; digits are a number")
      .option("--string", "the id is a string, even if it has only digits");

  onSequence("show", "show one sequence").action(
    async (model: string, id: string, options: Options, command: Command) => {
      const session = open(command);
      show(session, await session.gateway.get(pathOf(model, id, options)));
    },
  );

  onSequence("fork", "make another sequence that goes on from the same state")
    .requiredOption("--to <id>", "the id of the new sequence")
    .option("--step <n>", "go on from the state after this step; the last one by default", integer)
    .action(async (model: string, id: string, options: Options & { readonly to: string }, command: Command) => {
      const body = printJson({ sequence_id: idValue(options.to, options), step: options.step });
      await change(open(command), "POST", pathOf(model, id, options, "/fork"), body);
    });

  onSequence("rewind", "take a sequence back to an earlier step, and forget what came later")
    .requiredOption("--step <n>", "the last step that stays", integer)
    .action(async (model: string, id: string, options: Options, command: Command) => {
      await change(open(command), "POST", pathOf(model, id, options, "/rewind"), printJson({ step: options.step }));
    });

  onSequence("end", "end a sequence; what was sent of it before runs to its end").action(
    async (model: string, id: string, options: Options, command: Command) => {
      await change(open(command), "DELETE", pathOf(model, id, options));
    },
  );

  onSequence("export", "write a sequence's state to a file, as import reads it")
    .option("--step <n>", "the state after this step; the last one by default", integer)
    .option("-o, --output <file>", "where to write it; standard output by default")
    .action(async (model: string, id: string, options: Options, command: Command) => {
      await exportState(open(command), pathOf(model, id, options, "/state"), options.output);
    });

  onSequence("import", "make a sequence of an exported state")
    .argument("[file]", "what export has written; - reads standard input", "-")
    .action(async (model: string, id: string, file: string, options: Options, command: Command) => {
      const session = open(command);
      const path = pathOf(model, id, options, "/state");
      await change(session, "PUT", path, await readInput(file, session.signal), "application/octet-stream");
    });
}

async function change(
  session: Session,
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: string | Uint8Array,
  type = "application/json",
): Promise<void> {
  const sent = body === undefined ? {} : { headers: { "content-type": type }, body };
  show(session, await session.gateway.change(path, { method, ...sent }));
}

function show({ gateway, terminal }: Session, answer: Answer): void {
  const text = jsonOf(answer, gateway);
  if (terminal.json) terminal.document(text);
  else terminal.print(sequenceLines(readAnswer(text)));
}

async function exportState({ gateway, terminal }: Session, path: string, output: string | undefined): Promise<void> {
  if (output === undefined && !terminal.json && terminal.isScreen) {
    throw new Failure(exitCodes.usage, "a state is no text for a screen: add --output FILE, or send it to a file");
  }
  const { bytes } = await gateway.get(path);
  if (output !== undefined) await write(output, bytes);
  if (terminal.json) {
    const where = output === undefined ? { base64: bytes.toString("base64") } : { file: output };
    terminal.document(JSON.stringify({ bytes: bytes.length, ...where }));
  } else if (output === undefined) terminal.bytes(bytes);
  else terminal.note(`${bytes.length} bytes written to ${output}`);
}

async function write(file: string, bytes: Buffer): Promise<void> {
  try {
    await writeFile(file, bytes);
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new Failure(exitCodes.usage, `cannot write ${file} (${why})`, { cause });
  }
}

/** Reads all pages of the list. */
async function listAll({ gateway }: Session, model: string): Promise<Sequence[]> {
  const found: Sequence[] = [];
  let after: string | undefined;
  do {
    const query = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
    const path = `/v2/models/${segment(model)}/sequences?limit=${PAGE}${query}`;
    const text = jsonOf(await gateway.get(path, { known: after !== undefined }), gateway);
    const { sequences = [], next } = readAnswer<Sequences>(text);
    found.push(...sequences);
    after = next;
  } while (after !== undefined);
  return found;
}

function pathOf(model: string, id: string, { string, step }: Options, rest = ""): string {
  const query = [
    ...(string === true ? ["type=string"] : []),
    ...(rest === "/state" && step !== undefined ? [`step=${step}`] : []),
  ];
  const path = `/v2/models/${segment(model)}/sequences/${segment(id)}${rest}`;
  return query.length === 0 ? path : `${path}?${query.join("&")}`;
}

/** Reads an id as the gateway reads an id in a path. */
function idValue(id: string, { string }: Options): bigint | string {
  return string !== true && /^\d+$/.test(id) ? BigInt(id) : id;
}

/** A line for each sequence. */
export function listLines(sequences: readonly Partial<Sequence>[]): string[] {
  const rows = sequences.map((one) =>
    cells(one, ["sequence_id", "state", "step", "version", "state_bytes", "idle_deadline", "worker"]),
  );
  return table(["SEQUENCE", "STATE", "STEP", "VERSION", "STATE BYTES", "IDLE UNTIL", "WORKER"], rows);
}

/** A line for each member. */
export function sequenceLines(sequence: Partial<Sequence>): string[] {
  return pairs(Object.fromEntries(Object.entries(sequence).map(([name, value]) => [name, shown(value)])));
}
