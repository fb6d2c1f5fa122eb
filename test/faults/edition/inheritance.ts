/**
 * Work of every kind that one version of Baton has accepted, and that another version has to end:
 * jobs that are queued or wait for their time, a schedule, a batch under way, and a sequence.
 */
import OpenAI, { toFile } from "openai";
import { expect } from "vitest";
import { accepted, ask, ended, simpleBody, type Body } from "../../jobs/ask.js";
import { ended as endedBatch, inferLine, linesOf } from "../../support/batches/batches.js";
import { jobsOf, made } from "../../schedules/ask.js";
import { WebhookClient, type Receiver } from "../../support/jobs/webhooks.js";
import { readUntil, until } from "../../support/until.js";
import { nth, pause } from "../pace.js";

const LINES = 3_000;
const QUEUED = 100;
/** A batch is under way when it has so many answers. */
const ANSWERED = 100;
const EVERY_MS = 5_000;
/** Patience for messages to a receiver, whose sender may have died. */
const TOLD_MS = 180_000;

let inheritances = 0;

interface Made {
  readonly queued: readonly Body[];
  readonly later: Body;
  readonly dueMs: number;
  /** Ids. */
  readonly schedule: string;
  readonly batch: string;
  readonly sequence: number;
  /** At which the receiver is told of the ends. */
  readonly path: string;
}

export class Inheritance {
  readonly #made: Made;
  readonly #receiver: Receiver;
  #steps = 0;

  private constructor(made: Made, receiver: Receiver) {
    this.#made = made;
    this.#receiver = receiver;
  }

  /**
   * Makes the work at this gateway, and registers a webhook for its ends.
   * @param delayMs after which the waiting job is due
   */
  static async make(url: string, receiver: Receiver, delayMs: number): Promise<Inheritance> {
    const number = ++inheritances;
    const path = `/inheritance/${number}`;
    const registered = await new WebhookClient(url).ask("POST", "/webhooks", {
      url: receiver.url(path),
      events: ["job.completed"],
    });
    expect(registered.status).toBe(201);
    const dueMs = Date.now() + delayMs;
    const later = await accepted(url, "simple", { infer: simpleBody(5), run_at: new Date(dueMs).toISOString() });
    const schedule = await made(url, "simple", { every: EVERY_MS, job: { infer: simpleBody(4) } });
    const openai = clientOf(url);
    const text = Array.from({ length: LINES }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
    const file = await openai.files.create({ file: await toFile(Buffer.from(text), "lines.jsonl"), purpose: "batch" });
    const endpoint = "/v2/models/simple/infer" as "/v1/completions";
    const batch = await openai.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" });
    await until(async () => ((await openai.batches.retrieve(batch.id)).request_counts?.completed ?? 0) > ANSWERED);
    const queued = await Promise.all(
      Array.from({ length: QUEUED }, (_, i) => accepted(url, "simple", { infer: simpleBody(i) })),
    );
    const ids = { schedule: schedule.id, batch: batch.id, sequence: 880 + number };
    return new Inheritance({ queued, later, dueMs, ...ids, path }, receiver);
  }

  /** Runs further steps of the sequence, at these gateways in turn. Each adds 1 to the state. */
  async step(urls: readonly string[], count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const { body, text } = await ask(`${nth(urls, this.#steps)}/v2/models/accumulate/infer`, {
        body: {
          parameters: { sequence_id: this.#made.sequence, sequence_start: this.#steps === 0 },
          inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
        },
      });
      this.#steps++;
      const { outputs } = body as unknown as { readonly outputs?: readonly { readonly data: readonly number[] }[] };
      expect(outputs?.[0]?.data, text).toEqual([this.#steps]);
    }
  }

  /** Resolves two seconds after the waiting job is due. */
  whenDue(): Promise<void> {
    return pause(Math.max(0, this.#made.dueMs - Date.now() + 2_000));
  }

  /** Everything ends at this gateway as if one version had done it, and no end comes twice. */
  async expectEndsOnce(url: string): Promise<void> {
    const ends = await Promise.all(this.#made.queued.map(({ id }) => ended(url, id)));
    expect(ends.map(({ result }) => result?.outputs?.[0]?.data[0])).toEqual(ends.map((_, i) => 2 * i));
    await this.whenDue();
    const { result, attempts_made } = await ended(url, this.#made.later.id);
    expect([result?.outputs?.[0]?.data[0], attempts_made]).toEqual([10, 1]);
    await this.#expectBatch(url);
    await this.#expectSchedule(url);
    const ids = [...this.#made.queued, this.#made.later].map(({ id }) => id);
    await until(() => ids.every((id) => this.#told().has(id)), TOLD_MS);
    // A delivery may come again, but only under the same name.
    expect([...this.#told()].filter(([, names]) => names.size > 1)).toEqual([]);
  }

  async #expectBatch(url: string): Promise<void> {
    const openai = clientOf(url);
    const over = await endedBatch(openai, this.#made.batch, 120_000);
    const request_counts = { total: LINES, completed: LINES, failed: 0 };
    expect(over).toMatchObject({ status: "completed", request_counts });
    const lines = linesOf(await (await openai.files.content(over.output_file_id ?? "")).text());
    expect(lines.length).toBe(LINES);
    expect(new Set(lines.map((line) => line.custom_id)).size).toBe(LINES);
  }

  /** The schedule goes on, and has made one job for each of its times. */
  async #expectSchedule(url: string): Promise<void> {
    const { schedule } = this.#made;
    const before = (await jobsOf(url, schedule)).length;
    const runs = await readUntil(
      () => jobsOf(url, schedule),
      (jobs) => jobs.length > before,
      { patienceMs: 30_000 },
    );
    expect(runs.length).toBeGreaterThan(before);
    expect((await ask(`${url}/v2/schedules/${schedule}`, { method: "DELETE" })).status).toBe(204);
    const times = runs.map(({ scheduled_for }) => scheduled_for);
    expect(new Set(times).size).toBe(times.length);
  }

  /** By job, the names of the messages that its end has made. */
  #told(): ReadonlyMap<string, ReadonlySet<string>> {
    const told = new Map<string, Set<string>>();
    for (const { body, id } of this.#receiver.at(this.#made.path)) {
      const { data } = JSON.parse(body) as { readonly data: { readonly id: string } };
      told.set(data.id, (told.get(data.id) ?? new Set()).add(id));
    }
    return told;
  }
}

function clientOf(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 2 });
}
