/**
 * Has `letter-lstm` write a sentence on, and prints each letter as it comes. The whole sentence is
 * one request, for which a worker runs the model once for each letter.
 *
 *   node infra/models/letter-lstm/write.mjs "Mira the brave fox" [--url http://localhost:8000]
 */
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: "string", default: process.env["BATON_URL"] ?? "http://localhost:8000" } },
});
const opening = positionals[0] ?? "Mira the brave fox";
const response = await fetch(`${values.url}/v2/models/letter-lstm/generate_stream`, {
  method: "POST",
  body: JSON.stringify({ TOKENS: [...Buffer.from(opening)], LENGTH: 100 }),
});
if (!response.ok || response.body === null) throw new Error(await response.text());

process.stdout.write(opening);
let text = "";
for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
  const events = (text + piece).split("\n\n");
  text = events.pop() ?? "";
  for (const event of events) {
    /** @type {{ error?: string, TOKEN?: number }} */
    const { error, TOKEN } = JSON.parse(event.slice("data: ".length));
    if (TOKEN === undefined) throw new Error(error);
    process.stdout.write(String.fromCharCode(TOKEN));
  }
}
