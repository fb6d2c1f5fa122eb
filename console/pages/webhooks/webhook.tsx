/** A webhook: its events, its messages, and its secret when it changes. */
import { useState } from "preact/hooks";
import type { Webhook } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import { usePolled, type Polled } from "../../client/poll.js";
import { ActionButtons } from "../../listing/actions.js";
import { Facts, timeFacts, type Fact } from "../../listing/facts.js";
import { Secret } from "../../listing/secret.js";
import { Confirm } from "../../view/confirm.js";
import { attempt } from "../../view/failures.js";
import { Figures } from "../../view/figures.js";
import { Page } from "../../view/page.js";
import { goTo, hrefOf } from "../../view/route.js";
import { stateOf, webhookActions, webhookPath } from "./webhook-actions.js";
import { WebhookForm, type WebhookTerms } from "./webhook-form.js";

export function WebhookPage({ id }: { readonly id: string }) {
  const polled = usePolled<Webhook>(webhookPath(id));
  const webhook = polled.answer.value;
  return (
    <Page name={`Webhook ${id}`} polled={polled} above={{ name: "Webhooks", href: hrefOf("webhooks") }}>
      {webhook !== undefined && <Standing webhook={webhook} polled={polled} />}
    </Page>
  );
}

function Standing({ webhook, polled }: { readonly webhook: Webhook; readonly polled: Polled<Webhook> }) {
  const { id, url, events, disabled_reason: reason } = webhook;
  const [isChanging, setChanging] = useState(false);
  const save = async (terms: WebhookTerms) => {
    await change(webhookPath(id), { method: "PATCH", body: terms });
    setChanging(false);
    polled.refresh();
  };
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: stateOf(webhook) },
          { name: "URL", value: url },
        ]}
      />
      {reason === "gone" && (
        <p class="notice bad">
          <span>The receiver answered 410, so Baton sends it nothing. Resume the webhook to send again.</span>
        </p>
      )}
      <div class="bar" data-actions>
        <ActionButtons
          actions={webhookActions}
          thing={webhook}
          id={id}
          onDone={(verb) => (verb === "Delete" ? goTo(hrefOf("webhooks")) : polled.refresh())}
        />
        <button type="button" aria-expanded={isChanging} onClick={() => setChanging(!isChanging)}>
          Change
        </button>
      </div>
      {isChanging && <WebhookForm verb="Save webhook" given={{ url, events }} send={save} />}
      <Rotation id={id} onDone={() => polled.refresh()} />
      <Facts title="The webhook" facts={factsOf(webhook)} />
    </>
  );
}

function factsOf({ id, events, created_at: made, previous_secret_until: until }: Webhook): readonly Fact[] {
  return [
    { name: "Events", value: events.join(", ") },
    ...timeFacts({ Made: made, "The former secret signs until": until ?? null }),
    { name: "Messages", value: <a href={hrefOf("deliveries", [], { webhook: id })}>Deliveries to this webhook</a> },
  ];
}

/** How long the former secret signs beside the new one, in ms. */
const overlaps = [
  ["0", "no longer"],
  ["3600000", "for 1 hour"],
  ["86400000", "for 1 day"],
  ["604800000", "for 7 days"],
] as const;

interface RotationProps {
  readonly id: string;
  readonly onDone: () => void;
}

function Rotation({ id, onDone }: RotationProps) {
  const [overlap, setOverlap] = useState("86400000");
  const [secret, setSecret] = useState<string | undefined>(undefined);
  const rotate = () =>
    attempt(`Rotate ${id}`, async () => {
      const path = webhookPath(id, "/rotate");
      const question = { method: "POST", body: { overlap: Number(overlap) } } as const;
      setSecret((await change<Webhook>(path, question))?.secret);
      onDone();
    });
  return (
    <>
      <div class="bar">
        <label>
          The former secret signs
          <select value={overlap} onChange={({ currentTarget }) => setOverlap(currentTarget.value)}>
            {overlaps.map(([ms, text]) => (
              <option value={ms} key={ms}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <Confirm verb="Rotate" names={`Rotate ${id}`} onConfirm={rotate} />
        <span class="soft">Draws a new secret.</span>
      </div>
      {secret !== undefined && <Secret id={id} secret={secret} onClose={() => setSecret(undefined)} />}
    </>
  );
}
