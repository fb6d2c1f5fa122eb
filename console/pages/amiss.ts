/** What is amiss in a fleet, in words, the worst first. */
import type { Fleet } from "../../gateway/answers.js";
import { countText } from "../view/figures.js";

export interface Notice {
  readonly kind: "bad" | "warn";
  readonly text: string;
}

/** A queue that has used this part of its limit is nearly full. */
const NEARLY_FULL = 0.8;

export function noticesOf(fleet: Fleet): readonly Notice[] {
  const found = [...lost(fleet), ...unserved(fleet), ...failures(fleet), ...nearlyFull(fleet), ...setAside(fleet)];
  return found.toSorted((a, b) => Number(a.kind === "warn") - Number(b.kind === "warn"));
}

function lost({ gone_back: lost, unserved = [], durability }: Fleet): Notice[] {
  const notices: Notice[] = unserved.map(({ buckets, reason }) =>
    bad(`Buckets ${buckets.join(", ")} are away: ${reason}`),
  );
  if (lost !== undefined) {
    notices.push(
      bad(`Redis lost what it had acknowledged, ${times(lost.times)}, last at ${lost.last_at}: ${lost.error}`),
    );
  }
  if (durability === "fast")
    notices.push(warn("BATON_DURABILITY is fast: a power cut may lose about a second of work."));
  return notices;
}

function unserved({ workers, models }: Fleet): Notice[] {
  if (workers.length === 0) return [bad("No worker is alive: requests wait until one comes.")];
  return models
    .filter((model) => model.workers === 0)
    .map(({ name, version, queued }) =>
      queued > 0
        ? bad(`${name} ${version} has no worker, and ${countText(queued)} requests wait for one.`)
        : warn(`${name} ${version} has no worker.`),
    );
}

function failures({ workers }: Fleet): Notice[] {
  const seen = new Map<string, { readonly reason: string; readonly names: string[] }>();
  for (const { name: worker, failed } of workers) {
    for (const { name, version, reason } of failed) {
      const model = [name, version].filter(Boolean).join(" ");
      const known = seen.get(`${model}\n${reason}`) ?? { reason, names: [] };
      known.names.push(worker);
      seen.set(`${model}\n${reason}`, known);
    }
  }
  return [...seen].map(([key, { reason, names }]) => {
    const [model = ""] = key.split("\n", 1);
    return warn(
      `${countText(names.length)} of ${countText(workers.length)} workers could not load ${model}: ${reason}`,
    );
  });
}

function nearlyFull({ queue }: Fleet): Notice[] {
  const { limits } = queue;
  if (limits === undefined) return [];
  const full = (used: number, limit: number | undefined) =>
    limit !== undefined && limit > 0 && used >= limit * NEARLY_FULL;
  const ofModels = queue.models
    .filter(({ requests, bytes }) => full(requests, limits.model_requests) || full(bytes, limits.model_bytes))
    .map(({ name, requests }) => warn(`The queue of ${name} is nearly full: ${countText(requests)} requests.`));
  return full(queue.bytes, limits.bytes) ? [...ofModels, warn("The queue's bytes are nearly used up.")] : ofModels;
}

function setAside({ models }: Fleet): Notice[] {
  const counts = new Map(models.map((model) => [model.name, model.set_aside]));
  return [...counts]
    .filter(([, count]) => count > 0)
    .map(([name, count]) =>
      warn(`${countText(count)} requests of ${name} are set aside: a worker could not run them.`),
    );
}

const bad = (text: string): Notice => ({ kind: "bad", text });
const warn = (text: string): Notice => ({ kind: "warn", text });
const times = (count: number): string => (count === 1 ? "once" : `${countText(count)} times`);
