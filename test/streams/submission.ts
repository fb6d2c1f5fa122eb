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
      return {
        path: typeof prompt === "string" ? generate : "/v1/completions",
        headers: { prefer: "respond-async" },
        body: JSON.stringify(
          typeof prompt === "string" ? { text_input: prompt, ...parameters } : { model, prompt, ...parameters },
        ),
      };
  }
}
