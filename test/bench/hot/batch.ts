/**
 * The speed of a batch: a gateway, a jobs process and a worker answer the lines of a file, each a
 * request for the model `simple`.
 */
import { startFleet } from "../../support/fleet/fleet.js";
import { inferLine, linesOf } from "../../support/batches/batches.js";
import { until } from "../../support/until.js";
import { programsOf } from "../support/fleet.js";

export interface BatchResult {
  readonly linesPerSecond: number;
  readonly checked: number;
  readonly wrong: number;
}

export interface BatchBench {
  measure(): Promise<BatchResult>;
  dispose(): Promise<void>;
}

const LINES = 6_000;
const PATH = "/v2/models/simple/infer";

/** @param build the checkout whose build runs; undefined for this checkout */
export async function openBatches(folder: string, build: string | undefined): Promise<BatchBench> {
  const fleet = await startFleet({
    gateways: 1,
    workers: 1,
    jobs: 1,
    models: ["simple"],
    direct: true,
    folder,
    ...programsOf(build),
  });
  await fleet.whenServing();
  const [url = ""] = fleet.urls;
  const lines = Array.from({ length: LINES }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
  const asJson = async <Body>(path: string, init: RequestInit = {}): Promise<Body> => {
    const answer = await fetch(url + path, init);
    if (!answer.ok) throw new Error(`${path} is answered with ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as Body;
  };
  return {
    async measure() {
      const form = new FormData();
      form.set("purpose", "batch");
      form.set("file", new File([lines], "lines.jsonl"));
      const file = await asJson<{ id: string }>("/v1/files", { method: "POST", body: form });
      const wanted = { input_file_id: file.id, endpoint: PATH, completion_window: "24h" };
      const headers = { "content-type": "application/json" };
      const begunAt = performance.now();
      let batch = await asJson<{ id: string; status: string; output_file_id: string | null }>("/v1/batches", {
        method: "POST",
        headers,
        body: JSON.stringify(wanted),
      });
      await until(async () => {
        batch = await asJson(`/v1/batches/${batch.id}`);
        return batch.status === "completed";
      });
      const seconds = (performance.now() - begunAt) / 1_000;
      const output = await fetch(`${url}/v1/files/${batch.output_file_id}/content`);
      const answered = linesOf(await output.text());
      const isRight = ({ response }: (typeof answered)[number]) => {
        const { outputs = [] } = (response?.body ?? {}) as { outputs?: { name: string; data: number[] }[] };
        const sum = outputs.find(({ name }) => name === "OUTPUT0");
        return sum?.data.length === 16 && sum.data.every((value, i) => value === 2 * i);
      };
      const right = new Set(answered.filter(isRight).map(({ custom_id: id }) => id)).size;
      return { linesPerSecond: LINES / seconds, checked: LINES, wrong: LINES - right };
    },
    dispose: () => fleet.dispose(),
  };
}
