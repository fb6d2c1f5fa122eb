/**
 * The two streams that a command writes to. Results go to standard output: text for people, or JSON
 * for programs. Progress and errors go to standard error, so that neither is ever mixed into a
 * result.
 */
import { styleText } from "node:util";
import { harmless, harmlessJson } from "./text.js";

type Style = "bold" | "dim" | "red";

export interface TerminalSettings {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Whether results are printed as JSON. */
  readonly json: boolean;
  readonly env: NodeJS.ProcessEnv;
}

export class Terminal {
  readonly json: boolean;
  readonly #stdout: NodeJS.WriteStream;
  readonly #stderr: NodeJS.WriteStream;
  readonly #env: NodeJS.ProcessEnv;
  /** Whether the last line of a watched standard error is a progress that the next one replaces. */
  #hasProgress = false;

  constructor({ stdout, stderr, json, env }: TerminalSettings) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.json = json;
    this.#env = env;
  }

  /** Whether a person looks at the results as they come. */
  get isScreen(): boolean {
    return this.#stdout.isTTY;
  }

  /** Writes a piece of a result, such as the text of a token. */
  write(text: string): void {
    this.#stdout.write(this.isScreen ? harmless(text) : text);
  }

  /** Writes lines of a result; the first of them is a heading where that is said. */
  print(lines: readonly string[], { heading = false } = {}): void {
    const [first, ...others] = lines;
    if (first === undefined) return;
    const shown = this.isScreen ? lines.map(harmless) : [first, ...others];
    if (heading && hasColours(this.#stdout, this.#env)) shown[0] = styleText("bold", shown[0] ?? "");
    this.#stdout.write(`${shown.join("\n")}\n`);
  }

  /** Writes a JSON document on a line of its own. */
  document(json: string): void {
    this.#stdout.write(`${this.isScreen ? harmlessJson(json) : json}\n`);
  }

  bytes(bytes: Uint8Array): void {
    this.#stdout.write(bytes);
  }

  /** Clears a screen before the next state of something that is watched. */
  clear(): void {
    if (this.isScreen) this.#stdout.write("\u001b[2J\u001b[H");
  }

  /** Says something about what is going on, on standard error. */
  note(text: string): void {
    this.#tell(text, "dim");
  }

  /** Says why the command ends as it does. */
  problem(text: string): void {
    this.#tell(text, "red");
  }

  /** Whether a person looks at what goes on as it does. */
  get isWatched(): boolean {
    return this.#stderr.isTTY;
  }

  /** Says how far something is. On a screen it takes the place of what was said before of it. */
  progress(text: string): void {
    if (!this.isWatched) return this.note(text);
    this.#stderr.write(`${this.#hasProgress ? "\r\u001b[2K" : ""}${harmless(text)}`);
    this.#hasProgress = true;
  }

  #tell(text: string, style: Style): void {
    if (this.#hasProgress) this.#stderr.write("\n");
    this.#hasProgress = false;
    const line = `baton: ${this.#stderr.isTTY ? harmless(text) : text}`;
    this.#stderr.write(`${hasColours(this.#stderr, this.#env) ? styleText(style, line) : line}\n`);
  }
}

/** As https://no-color.org says: NO_COLOR with any value but an empty one turns colours off. */
function hasColours(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}
