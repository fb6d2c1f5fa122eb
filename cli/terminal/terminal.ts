/**
 * The two output streams of a command. Results go to standard output: text for people, or JSON for
 * programs. Progress and errors go to standard error, so that results stay free of both.
 */
import { styleText } from "node:util";
import { harmless, harmlessJson } from "./text.js";

type Style = "bold" | "dim" | "red";

export interface TerminalSettings {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Whether to print results as JSON. */
  readonly json: boolean;
  readonly env: NodeJS.ProcessEnv;
}

export class Terminal {
  readonly json: boolean;
  readonly #stdout: NodeJS.WriteStream;
  readonly #stderr: NodeJS.WriteStream;
  readonly #env: NodeJS.ProcessEnv;
  /**
   * Whether the last line on the screen is a progress line, which the next progress line replaces.
   */
  #hasProgress = false;

  constructor({ stdout, stderr, json, env }: TerminalSettings) {
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.json = json;
    this.#env = env;
  }

  /** Whether standard output is a screen. */
  get isScreen(): boolean {
    return this.#stdout.isTTY;
  }

  /** Writes a piece of a result, for example the text of a token. */
  write(text: string): void {
    this.#stdout.write(this.isScreen ? harmless(text) : text);
  }

  /** Writes lines of a result. With `heading`, the first line is bold on a screen. */
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

  /** Clears a screen before the next state of the watched fleet. */
  clear(): void {
    if (this.isScreen) this.#stdout.write("\u001b[2J\u001b[H");
  }

  /** Prints a progress message to standard error. */
  note(text: string): void {
    this.#tell(text, "dim");
  }

  /** Prints the reason for an early end to standard error. */
  problem(text: string): void {
    this.#tell(text, "red");
  }

  /** Whether standard error is a screen. */
  get isWatched(): boolean {
    return this.#stderr.isTTY;
  }

  /** Prints progress. On a screen the text replaces the previous progress line. */
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

/** As https://no-color.org says: NO_COLOR with any value but an empty text turns colours off. */
function hasColours(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}
