/** Webhooks and deliveries: making, changing, drawing secrets anew, lists, replays, refusals. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { jsonOf, type Recorder } from "../recording/recorder.js";
import { infer } from "./jobs.js";

export async function webhooks(api: Recorder): Promise<void> {
  const receiver = createServer((incoming, outgoing) => {
    incoming.resume();
    outgoing.writeHead(204).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  try {
    await exchanges(api, `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`);
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
}

async function exchanges(api: Recorder, url: string): Promise<void> {
  const events = ["job.completed"];
  await api.get("/v2/webhooks");
  await api.get("/v2/deliveries");
  const { id } = jsonOf(await api.post("/v2/webhooks", { url, events }));
  await api.post("/v2/webhooks", { url, events: ["sequence.expired"], secret: `whsec_${"A".repeat(32)}` });
  for (const body of [
    { url },
    { events },
    { url, events: [] },
    { url, events: ["none"] },
    { url, events: "job.completed" },
    { url, events: ["job.completed", "job.completed"] },
    { url: "nowhere", events },
    { url: "ftp://example.com/", events },
    { url: "http://10.1.2.3/", events },
    { url: 5, events },
    { url, events, secret: "short" },
    { url, events, other: 1 },
    "",
    "{",
    "[]",
  ]) {
    await api.post("/v2/webhooks", body);
  }
  const path = `/v2/webhooks/${id}`;
  await api.get(path);
  const patch = (body: object | string) => api.send({ method: "PATCH", path, body });
  for (const body of [
    {},
    { enabled: false },
    { enabled: "no" },
    { events: ["job.completed", "job.failed"] },
    { events: ["none"] },
    { url: `${url}/2` },
    { url: "http://10.1.2.3/" },
    { enabled: true },
    { other: 1 },
    "",
  ]) {
    await patch(body);
  }
  for (const body of ["", { overlap: 1_000 }, { overlap: -1 }, { overlap: 1e12 }, { overlap: "x" }, { other: 1 }])
    await api.post(`${path}/rotate`, body);
  for (const query of ["?limit=1", `?after=${id}`, "?limit=0", "?after=none", "?other=1"])
    await api.get(`/v2/webhooks${query}`);
  await api.as("stranger").get(path);

  const job = jsonOf(await api.ask({ method: "POST", path: "/v2/models/simple/jobs", body: { infer } }));
  const delivered = `/v2/deliveries?job=${job.id}`;
  const list = jsonOf(
    await api.until(delivered, ({ data }) => data.length > 0 && data.every((one) => one.state !== "pending")),
  );
  for (const query of [
    `?webhook=${id}`,
    "?state=pending",
    "?state=none",
    "?limit=0",
    "?after=none",
    "?other=1",
    "?job=none",
  ])
    await api.get(`/v2/deliveries${query}`);
  const replay = `/v2/deliveries/${list.data[0]?.id ?? ""}/replay`;
  await api.post(replay, { other: 1 });
  await api.post(replay);
  await api.until(delivered, ({ data }) => data.some(({ attempts }) => attempts.length === 2));
  await api.as("stranger").post(replay);
  await api.delete(path);
  await api.delete(path);
  await api.get(path);
}
