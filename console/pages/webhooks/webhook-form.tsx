/** The address and the events of a webhook. */
import { useState } from "preact/hooks";
import type { Webhook } from "../../../gateway/answers.js";
import { attempt } from "../../view/failures.js";
import { eventNames, type EventName } from "./webhook-actions.js";

export type WebhookTerms = Pick<Webhook, "url" | "events">;

export interface WebhookFormProps {
  /** Such as `Submit webhook`. */
  readonly verb: string;
  readonly given: WebhookTerms;
  readonly send: (terms: WebhookTerms) => Promise<unknown>;
}

export function WebhookForm({ verb, given, send }: WebhookFormProps) {
  const [url, setUrl] = useState(given.url);
  const [events, setEvents] = useState<readonly EventName[]>(given.events);
  const [isBusy, setBusy] = useState(false);
  const toggle = (event: EventName) =>
    setEvents(events.includes(event) ? events.filter((one) => one !== event) : [...events, event]);
  const submit = async () => {
    setBusy(true);
    await attempt(verb, () => send({ url, events: [...events] }));
    setBusy(false);
  };
  return (
    <form
      class="sheet section"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label>
        URL
        <input
          type="url"
          required
          class="wide"
          value={url}
          onInput={({ currentTarget }) => setUrl(currentTarget.value)}
        />
      </label>
      <div class="bar" role="group" aria-label="Events">
        {eventNames.map((event) => (
          <label class="check" key={event}>
            <input type="checkbox" checked={events.includes(event)} onChange={() => toggle(event)} /> {event}
          </label>
        ))}
      </div>
      <div class="bar">
        <button type="submit" class="main" disabled={isBusy || events.length === 0}>
          {verb}
        </button>
      </div>
    </form>
  );
}
