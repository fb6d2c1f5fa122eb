/**
 * The measurements of the queue's cost in a round: a row each, in a fleet or on a Redis of its own,
 * so that a run can choose single rows.
 */
import { join } from "node:path";
import { makeRepository } from "../../support/fleet/repository.js";
import type { ReferenceJob } from "../bare/reference.js";
import type { LoadJob, LoadResult } from "../load/measure.js";
import { runChild } from "../support/child.js";
import { benchRepository, cheap, large, tiny, type BenchModel } from "../support/models.js";
import type { Scenarios } from "../support/rounds.js";
import type { Timing } from "../steps/scenarios.js";
import type { StreamReferenceJob } from "../streams/reference.js";
import { measureLiveness, measureWideRead, type LivenessCost, type WideReadCost } from "./alone.js";
import { measureManyKeys, type ManyKeysCost } from "./many-keys.js";
import { measureDeadWorker, type DeadWorkerResult } from "./dead-worker.js";
import { measureHolding, measureOpenRequests, type HoldingCost, type OpenRequestsCost } from "./held.js";
import { measureIdleSequences, type IdleSequencesCost } from "./idle-sequences.js";
import { measureIdleWorker, type IdleWorkerCost } from "./idle-worker.js";
import { measureManyWorkers, type ManyWorkersCost } from "./many-workers.js";
import { copiesOfAccumulate, STEP_BYTES, type Copy } from "./models.js";
import { measureStepCost, type StepCost } from "./steps.js";
import type { SumsJob, SumsResult } from "./sums.js";
import { measureTokenCost, type TokenCost } from "./tokens.js";
import { measureWorkerStart, type WorkerStart } from "./worker-start.js";

export interface QueueRound {
  stepCost: StepCost;
  limitedStepCost: StepCost;
  smallStepCost: StepCost;
  largeStepCost: StepCost;
  tokenCost: TokenCost;
  idleWorker: IdleWorkerCost;
  heldSteps: HoldingCost;
  openRequests: OpenRequestsCost;
  idleSequences: IdleSequencesCost;
  liveness: LivenessCost;
  wideRead: WideReadCost;
  deadWorker: DeadWorkerResult;
  workerStart: WorkerStart;
  manyWorkers: ManyWorkersCost;
  manyKeys: ManyKeysCost;
}

export const queueNames: readonly (keyof QueueRound)[] = [
  "stepCost",
  "limitedStepCost",
  "smallStepCost",
  "largeStepCost",
  "tokenCost",
  "idleWorker",
  "heldSteps",
  "openRequests",
  "idleSequences",
  "liveness",
  "wideRead",
  "deadWorker",
  "workerStart",
  "manyWorkers",
  "manyKeys",
];

export interface QueuePlan {
  readonly folder: string;
  readonly timing: Timing;
  readonly quick: boolean;
  readonly progress: (line: string) => void;
}

/**
 * How many sequences to make, and how long an idle sequence lives. The making runs at a thousand a
 * second or faster, and the measurement takes four seconds.
 */
const MANY = { count: 10_000, idleMs: 18_000 };
const FEW = { count: 1_500, idleMs: 8_000 };

/** The sizes of the fleets for the comparison of a step's cost. */
const FEW_WORKERS = 4;
const MANY_WORKERS = 64;
/** With `--quick`, because the start of the rest would take longer than all other rows. */
const SOME_WORKERS = 16;

/** A rate that two cores carry beside 64 workers, far below the limit of either fleet. */
const STEPS_PER_SECOND = 150;

/** Enough for batches of 32 to 64, because a step waits and settles for longer than it runs. */
const SEQUENCES = 128;
/** The tensors of a step: X comes in, Y goes out, H and C stay. */
const TENSORS = 4;
const BYTES_PER_ELEMENT = 4;
/** The model with the smallest tensors. */
const SUM: Copy = { name: "sum", batch: SEQUENCES };

/**
 * Half as long as the answers of `cheap` in other scenarios, to compute the expected answers
 * sooner.
 */
const ANSWER_TOKENS = 256;

export function queueScenarios({ folder, timing, quick, progress }: QueuePlan): Scenarios<QueueRound> {
  const { measureMs } = timing;
  const expectedOf = once(async (model: BenchModel) => {
    const job: ReferenceJob = { model, file: join(folder, `${model.name}.queue-expected`) };
    await runChild(new URL("../bare/reference.js", import.meta.url), job);
    return job.file;
  });
  const repositories = {
    sums: (place: string) => copiesOfAccumulate(place, [SUM]),
    tensors: benchRepository,
    generators: (place: string) => makeRepository(place, [cheap.name]),
  };
  const repositoryOf = once((kind: keyof typeof repositories) =>
    Promise.resolve(repositories[kind](join(folder, `queue-${kind}`))),
  );
  const referencesOf = once(async (answerTokens: number) => {
    const model = { ...cheap, answerTokens };
    const job: StreamReferenceJob = { model, file: join(folder, `${cheap.name}-${answerTokens}.queue-answers`) };
    await runChild(new URL("../streams/reference.js", import.meta.url), job);
    return { model, references: job.file };
  });
  const stepsOf = async (model: BenchModel) => {
    const expected = await expectedOf(model);
    const load = (port: number, ms: number) => {
      const job: LoadJob = { port, model, sequences: SEQUENCES, expected, warmupMs: 0, measureMs: ms };
      return runChild<LoadJob, LoadResult>(new URL("../load/measure.js", import.meta.url), job);
    };
    const payload = TENSORS * BYTES_PER_ELEMENT * model.size;
    const repository = await repositoryOf("tensors");
    return measureStepCost({ folder, repository, model: model.name, payload, load, measureMs });
  };
  const sums = (port: number, loopMs: number, key?: string) => {
    const job: SumsJob = { port, model: SUM.name, loopMs, key };
    return runChild<SumsJob, SumsResult>(new URL("./sums.js", import.meta.url), job);
  };
  const sumsPlan = async () => {
    const repository = await repositoryOf("sums");
    return { folder, repository, model: SUM.name, payload: STEP_BYTES, load: sums, measureMs, monitored: true };
  };
  return {
    stepCost: async () => measureStepCost(await sumsPlan()),
    limitedStepCost: async () => measureStepCost({ ...(await sumsPlan()), isLimited: true }),
    smallStepCost: () => stepsOf(tiny),
    largeStepCost: () => stepsOf(large),
    async tokenCost() {
      const answers = await referencesOf(ANSWER_TOKENS);
      return measureTokenCost({ folder, repository: await repositoryOf("generators"), ...answers, timing, progress });
    },
    idleWorker: () => measureIdleWorker({ folder, measureMs }),
    heldSteps: () => measureHolding({ folder, measureMs }),
    openRequests: () => measureOpenRequests({ folder, measureMs }),
    idleSequences: () => measureIdleSequences({ folder, ...(quick ? FEW : MANY), progress }),
    liveness: () => measureLiveness({ folder, timing }),
    wideRead: () => measureWideRead({ folder, timing }),
    workerStart: () => measureWorkerStart(folder),
    manyKeys: () => measureManyKeys({ folder, keys: quick ? 10_000 : 100_000 }),
    async manyWorkers() {
      const repository = await repositoryOf("sums");
      const fleets = { few: FEW_WORKERS, many: quick ? SOME_WORKERS : MANY_WORKERS };
      const load = (port: number, loopMs: number) => {
        const job: SumsJob = { port, model: SUM.name, loopMs, perSecond: STEPS_PER_SECOND };
        return runChild<SumsJob, SumsResult>(new URL("./sums.js", import.meta.url), job);
      };
      return measureManyWorkers({
        folder,
        repository,
        model: SUM.name,
        load,
        windowMs: quick ? 5_000 : 20_000,
        ...fleets,
      });
    },
    async deadWorker() {
      const [repository, expected] = [await repositoryOf("tensors"), await expectedOf(tiny)];
      return measureDeadWorker({ folder, repository, expected, timing });
    },
  };
}

/** Remembers each made value, so that later rounds reuse the value. */
function once<Key, Value>(make: (key: Key) => Promise<Value>): (key: Key) => Promise<Value> {
  const made = new Map<Key, Promise<Value>>();
  return (key) => {
    const known = made.get(key) ?? make(key);
    made.set(key, known);
    return known;
  };
}
