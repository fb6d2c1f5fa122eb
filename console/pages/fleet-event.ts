/** An event of the fleet, in words. */
import { parseJson } from "../client/json.js";
import { countText } from "../view/figures.js";

export interface ShownEvent {
  readonly id: string | undefined;
  readonly kind: "good" | "warn" | "bad";
  /** As the gateway names the event. */
  readonly name: string;
  /** In RFC 3339; undefined if the gateway does not say the time. */
  readonly at: string | undefined;
  readonly text: string;
}

/** The facts of all kinds of events. An event has some of them. */
interface Facts {
  readonly at?: string;
  readonly worker?: string;
  readonly host?: string;
  readonly model?: string;
  readonly version?: string;
  readonly count?: number;
  readonly error?: string;
}

const kinds: Readonly<Record<string, readonly [ShownEvent["kind"], (facts: Facts) => string]>> = {
  "worker.joined": ["good", ({ worker, host }) => `Worker ${worker} (${host}) has joined`],
  "worker.left": ["warn", ({ worker, host }) => `Worker ${worker} (${host}) has left`],
  "worker.lost": ["bad", ({ worker, host }) => `Worker ${worker} (${host}) is lost`],
  takeover: [
    "warn",
    ({ model, version, count }) => `Other workers took over ${requests(count)} of ${model} ${version}`,
  ],
  "model.served": ["good", ({ model, version }) => `Model ${model} ${version} is served`],
  "model.retired": ["warn", ({ model, version }) => `Model ${model} ${version} is served no longer`],
  "dead.added": ["bad", ({ model, count }) => `A worker could not run ${requests(count)} of ${model}, now set aside`],
  gone_back: ["bad", ({ error }) => `Redis lost what it had acknowledged: ${error}`],
};

/** @param data in JSON */
export function eventOf(id: string | undefined, name = "", data: string): ShownEvent {
  const facts = parseJson(data) as Facts;
  // A newer gateway may send events that this page does not know.
  const [kind, textOf] = kinds[name] ?? ["warn" as const, () => data];
  return { id, kind, name, at: facts.at, text: textOf(facts) };
}

const requests = (count = 0): string => (count === 1 ? "1 request" : `${countText(count)} requests`);
