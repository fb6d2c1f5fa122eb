/**
 * A job was queued, and then Redis cannot be read: its client must not believe that the job was
 * refused.
 */
import { expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { connectRedis } from "#shared/redis/connect.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { Deadlines } from "../../gateway/admission/deadlines.js";
import { directoryOf } from "../../gateway/fleet/models.js";
import { defaultLimits } from "../../gateway/formats/limits.js";
import { Jobs } from "../../gateway/jobs/jobs.js";
import { RequestReader } from "../../gateway/formats/kserve/request-reader.js";
import { TensorPrinter } from "../../gateway/formats/kserve/tensor-printer.js";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { SecretBox } from "../../gateway/webhooks/secrets.js";
import { Webhooks } from "../../gateway/webhooks/webhooks.js";
import { servedModel } from "../fixtures/served-models.js";
import { LIMITS, secret, useLab } from "../support/queue/lab.js";
import { silentBus as bus, silentLog as log } from "../support/silent.js";

const lab = useLab();

it("says that it may have been accepted", async () => {
  // Admission has its own connection.
  const lost = connectRedis({ url: lab.url, name: "lost", log });
  lost.disconnect();
  const model = servedModel(lab.lane.model);
  const jobs = new Jobs({
    queue: {
      redis: lost,
      batcher: new AdmissionBatcher(lab.redis, { gateway: "gw", limits: LIMITS, buckets: 1 }),
      buckets: 1,
      models: { pinned: () => undefined, heir: () => undefined },
      secret,
      idempotencyTtlMs: 60_000,
    },
    pending: new PendingRequests({ redis: lab.redis, bus, gateway: "gw", secret, log }),
    deadlines: new Deadlines({ redis: lab.redis, bus, log }),
    bus,
    fleet: { directory: directoryOf([]) },
    reader: new RequestReader(),
    limits: defaultLimits,
    printer: new TensorPrinter(),
    jobTtlMs: 60_000,
    resultTtlMs: 60_000,
    publishesLabels: false,
    box: new SecretBox(undefined),
    hooks: { webhooks: new Webhooks({ redis: lab.redis, buckets: 1 }), allowed: [] },
  });
  const options = { priority: null, deadline: null, result_ttl: 60_000, labels: {}, attempts: 1, version: null };
  const request = {
    model,
    tenant: DEFAULT_TENANT,
    sequence: undefined,
    idempotencyKey: undefined,
    deadlineMs: 60_000,
    inputs: [],
    outputs: [],
    parameters: {},
    under: () => request,
  };
  const prepared = {
    run: { kind: "tensors", request },
    shown: { as: "tensors", id: "", outputs: [] },
    timeoutMs: 60_000,
  } as const;
  const terms = { waitMs: 60_000, tooLate: undefined };
  const submitted = jobs.submissions.submit({ type: "infer", options, prepared, body: Buffer.from("{}"), ...terms });
  await expect(submitted).rejects.toMatchObject({ code: "outcome_unknown" });
  expect(await lab.take()).toHaveLength(1);
});
