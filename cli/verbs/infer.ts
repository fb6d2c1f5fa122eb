/** `infer`: sends the request in a file to a tensor model, and shows the outputs. */
import type { Command } from "commander";
import { asArray, isObject } from "#shared/json/members.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import { TensorData } from "#shared/json/tensor-data.js";
import { segment } from "../client/address.js";
import { jsonOf } from "../client/gateway.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { onOneLine, table } from "../terminal/text.js";
import { readInput } from "./options.js";
import type { OpenSession } from "./session.js";

/** The most elements of an output to show; `--json` prints all. */
const SHOWN_ELEMENTS = 16;

export function addInfer(program: Command, open: OpenSession): void {
  program
    .command("infer")
    .description("send an inference request, the JSON of a file, and show what the model answers")
    .argument("<model>")
    .argument("<file>", "the body of POST /v2/models/<model>/infer; - reads standard input")
    .action(async (model: string, file: string, _: object, command: Command) => {
      const { gateway, terminal, signal } = open(command);
      const body = await readInput(file, signal);
      const headers = { "content-type": "application/json" };
      const answer = await gateway.change(`/v2/models/${segment(model)}/infer`, { method: "POST", headers, body });
      if (answer.headers.has("inference-header-content-length")) {
        throw new Failure(exitCodes.usage, "the request asks for binary outputs: leave out binary_data in its JSON");
      }
      const text = jsonOf(answer, gateway);
      if (terminal.json) terminal.document(text);
      else for (const lines of answerTables(readOutputs(text))) terminal.print(lines, { heading: true });
    });
}

/** Parses an answer. Checks the tensors' data but builds no values. */
export function readOutputs(text: string): JsonObject {
  const parsed = parseJson(Buffer.from(text), (name) => name === "data");
  return isObject(parsed) ? parsed : {};
}

/** @returns a table of the outputs, and a table of the parameters if there are any */
export function answerTables({ outputs = [], parameters = {} }: JsonObject): string[][] {
  const rows = asArray(outputs, "outputs").filter(isObject).map(outputRow);
  const said = isObject(parameters) ? Object.entries(parameters) : [];
  return [
    table(["OUTPUT", "DATATYPE", "SHAPE", "DATA"], rows),
    ...(said.length > 0
      ? [
          table(
            ["PARAMETER", "VALUE"],
            said.map(([name, value]) => [onOneLine(name), onOneLine(printJson(value))]),
          ),
        ]
      : []),
  ];
}

function outputRow({ name = "", datatype = "", shape = [], data }: JsonObject): string[] {
  const shown = data instanceof TensorData ? dataText(data) : "";
  return [onOneLine(textOf(name)), onOneLine(textOf(datatype)), printJson(shape), onOneLine(shown)];
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : printJson(value);
}

function dataText(data: TensorData): string {
  const elements = data.elements();
  const next = data.holdsOnly("number")
    ? () => String(elements.number())
    : data.holdsOnly("boolean")
      ? () => String(elements.boolean())
      : () => JSON.stringify(elements.string());
  const shown = Array.from({ length: Math.min(data.count, SHOWN_ELEMENTS) }, next);
  const more = data.count - shown.length;
  return shown.join(" ") + (more > 0 ? ` … ${more} more` : "");
}
