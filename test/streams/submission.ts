/** One ask in the words of each front door. */
import type { StreamAsk } from "./ask.js";
import type { Manner } from "./history.js";

export interface Submission {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function submissionOf({ model, prompt, parameters }: StreamAsk, manner: Manner): Submission {
  const generate = `/v2/models/${model}/generate_stream`;
  switch (manner) {
    case "completions":
      return {
        path: "/v1/completions",
        headers: {},
        body: JSON.stringify({ model, prompt, stream: true, ...parameters }),
      };
    case "generate_stream":
      return { path: generate, headers: {}, body: JSON.stringify({ text_input: prompt, ...parameters }) };
    case "events":
    case "websocket":
      return {
        path: typeof prompt === "string" ? generate : "/v1/completions",
        headers: { prefer: "respond-async" },
        body: JSON.stringify(
          typeof prompt === "string" ? { text_input: prompt, ...parameters } : { model, prompt, ...parameters },
        ),
      };
  }
}

/** @returns the public id. */
export async function submitInBackground(gateway: string, ask: StreamAsk): Promise<string> {
  const { path, headers, body } = submissionOf(ask, "events");
  const answer = await fetch(gateway + path, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body,
  });
  const { id } = (await answer.json()) as { id?: string };
  if (answer.status !== 202 || id === undefined) throw new Error(`answered with ${answer.status}`);
  return id;
}
