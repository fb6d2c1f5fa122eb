/** Credentials for reading streams straight from NATS: of a model, of a label, of all. */
import type { Recorder } from "../recording/recorder.js";

export async function subscriptions(api: Recorder): Promise<void> {
  for (const body of [
    {},
    "",
    { model: "tale-gpt" },
    { model: "simple" },
    { model: "absent" },
    { model: 5 },
    { label: "team:blue" },
    { label: "team" },
    { label: 5 },
    { model: "tale-gpt", label: "team:blue" },
    { durable: "mine" },
    { durable: "a b" },
    { ttl: 5_000 },
    { ttl: 1 },
    { ttl: 1e9 },
    { ttl: "x" },
    { other: 1 },
    "{",
    "[]",
  ]) {
    await api.post("/v2/subscriptions", body);
  }
}
