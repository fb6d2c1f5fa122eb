/** A prompt for a language model. Its stream runs in the background, and has a page of its own. */
import { useState } from "preact/hooks";
import { change } from "../client/ask.js";
import { hasKey } from "../client/key.js";
import { CopyCurl } from "../view/copy-curl.js";
import { attempt } from "../view/failures.js";
import { goTo, hrefOf } from "../view/route.js";

export function TryPrompt({ model }: { readonly model: string }) {
  const [prompt, setPrompt] = useState("Write a short story about a cat who discovers a secret portal.");
  const [tokens, setTokens] = useState("200");
  const [temperature, setTemperature] = useState("0.8");
  const [seed, setSeed] = useState("");
  const [isBusy, setBusy] = useState(false);
  const path = `/v2/models/${encodeURIComponent(model)}/generate_stream`;
  const body = {
    text_input: prompt,
    max_tokens: Number(tokens),
    temperature: Number(temperature),
    ...(seed !== "" && { seed: Number(seed) }),
  };
  const send = async () => {
    setBusy(true);
    await attempt("Send", async () => {
      // The gateway answers at once, and the page of the stream reads the records by their index.
      const question = { method: "POST", headers: { prefer: "respond-async" }, body } as const;
      const accepted = await change<{ readonly id: string }>(path, question);
      if (accepted !== undefined) goTo(hrefOf("streams", [accepted.id]));
    });
    setBusy(false);
  };
  return (
    <form
      class="sheet section"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label>
        Prompt
        <textarea rows={6} required value={prompt} onInput={({ currentTarget }) => setPrompt(currentTarget.value)} />
      </label>
      <div class="bar">
        <label>
          Most tokens
          <input
            type="number"
            min="1"
            required
            value={tokens}
            onInput={({ currentTarget }) => setTokens(currentTarget.value)}
          />
        </label>
        <label>
          Temperature
          <input
            type="number"
            min="0"
            step="any"
            required
            value={temperature}
            onInput={({ currentTarget }) => setTemperature(currentTarget.value)}
          />
        </label>
        <label>
          Seed, or none
          <input type="number" min="0" value={seed} onInput={({ currentTarget }) => setSeed(currentTarget.value)} />
        </label>
        <button type="submit" class="main" disabled={isBusy}>
          Send
        </button>
        <CopyCurl path={path} body={body} hasKey={hasKey()} />
      </div>
    </form>
  );
}
