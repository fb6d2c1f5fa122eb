/** Schedules: making, looking, pages, pausing, resuming, removing, and refusals. */
import { jsonOf, type Recorder } from "../recording/recorder.js";
import { infer } from "./jobs.js";

const PATH = "/v2/models/simple/schedules";
const job = { infer };
/** Runs once a year, so that no run falls into the recording. */
const yearly = { cron: "0 0 1 1 *", job };

export async function schedules(api: Recorder): Promise<void> {
  await api.get("/v2/schedules");
  const made = jsonOf(await api.post(PATH, yearly));
  await api.post("/v2/models/simple/versions/1/schedules", { ...yearly, timezone: "Europe/Berlin", limit: 3 });
  for (let i = 0; i < 2; i += 1) await api.post(PATH, yearly, { "idempotency-key": "yearly" });
  await api.post(PATH, { ...yearly, limit: 2 }, { "idempotency-key": "yearly" });
  for (const body of [
    { job },
    { cron: "x", job },
    { cron: "0 0 30 2 *", job },
    { cron: "* * * * * *", job },
    { cron: 5, job },
    { ...yearly, every: 5_000 },
    { every: 5, job },
    { every: "x", job },
    { every: 5_000, timezone: "UTC", job },
    { ...yearly, timezone: "Moon" },
    { ...yearly, start_at: "x" },
    { ...yearly, start_at: "2900-01-01T00:00:00Z" },
    { ...yearly, end_at: "2020-01-01T00:00:00Z" },
    { ...yearly, limit: 0 },
    { ...yearly, limit: "x" },
    { ...yearly, other: 1 },
    { cron: "0 0 1 1 *" },
    { ...yearly, job: 5 },
    { ...yearly, job: {} },
    { ...yearly, job: { infer, delay: 5 } },
    { ...yearly, job: { infer, run_at: "2099-01-01T00:00:00Z" } },
    { ...yearly, job: { infer, deadline: "2099-01-01T00:00:00Z" } },
    { ...yearly, job: { infer, webhook: { url: "http://127.0.0.1:9/x" } } },
    { ...yearly, job: { infer, webhook: { id: "wh_none" } } },
    { ...yearly, job: { infer: { inputs: [] } } },
    "",
    "{",
    "[]",
  ]) {
    await api.post(PATH, body);
  }
  await api.post("/v2/models/absent/schedules", yearly);
  const path = `/v2/schedules/${made.id}`;
  await api.get(path);
  for (const verb of ["pause", "pause", "resume", "resume"]) await api.post(`${path}/${verb}`);
  for (const query of ["?limit=1", `?limit=1&after=${made.id}`, "?limit=0", "?after=none", "?other=1"])
    await api.get(`/v2/schedules${query}`);
  await api.as("stranger").get(path);
  await api.as("stranger").delete(path);
  await api.delete(path);
  await api.delete(path);
  await api.get(path);
}
