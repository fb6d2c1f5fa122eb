/**
 * The invariants of spec/reliability.md section 1 that concern sequences, each a pure function from evidence to violations. None may
 * stay silent on evidence that it cannot read: what was not seen is not proven.
 */
import { checkFold } from "./fold.js";
import type { CommitSample, Floor, ResourceLimits, ResourceSample } from "./facts.js";
import { bySequence, type Event, type RequestHistory } from "./history.js";

export interface Violation {
  readonly invariant: "I1" | "I2" | "I3" | "I4" | "I5" | "I9" | "I10" | "I11" | "I12" | "I13";
  readonly what: string;
  readonly request?: string;
  readonly sequence?: string;
}

type Requests = ReadonlyMap<string, RequestHistory>;

/** I1: what was accepted has an outcome. A refusal that names a loss is a loss, however politely put. */
export function everyRequestEnds(requests: Requests, floor: Floor): Violation[] {
  const lossCodes = new Set(["request_lost", "state_lost", "state_corrupt", "expired"]);
  const violations: Violation[] = floor.openOutcomes.map((key) => ({
    invariant: "I1",
    what: `accepted, but without outcome at quiescence: ${key}`,
  }));
  for (const { ask, submits, endings, outcomes } of requests.values()) {
    const loss = outcomes.find((outcome) => outcome.kind === "fail" && lossCodes.has(outcome.code));
    if (loss?.kind === "fail" && ask.expects !== loss.code)
      violations.push({ invariant: "I1", request: ask.request, what: `ended as ${loss.code}` });
    if (endings.length < submits.length)
      violations.push({ invariant: "I1", request: ask.request, what: "the client still waits for an answer" });
  }
  return violations;
}

/** I2: all readings of a request, through any gateway, say the same. */
export function oneOutcome(requests: Requests): Violation[] {
  return [...requests.values()].flatMap(({ ask, outcomes }) => {
    const told = new Set(outcomes.map((one) => (one.kind === "ok" ? `ok ${one.output}` : `fail ${one.code}`)));
    if (told.size < 2) return [];
    return [{ invariant: "I2", request: ask.request, what: `different outcomes: ${[...told].join(" / ")}` } as const];
  });
}

/** I3: no outcome for what was never asked, and no answer to another's question. */
export function noPhantom(events: readonly Event[], requests: Requests, floor: Floor): Violation[] {
  const violations: Violation[] = [];
  for (const event of events) {
    if (event.kind === "submit") continue;
    if (!requests.has(event.request))
      violations.push({ invariant: "I3", request: event.request, what: "an ending without a submit" });
    if (event.kind === "ok" && event.echoedId !== event.request)
      violations.push({
        invariant: "I3",
        request: event.request,
        what: `answered with id ${event.echoedId ?? "(none)"}`,
      });
  }
  if (floor.outcomeRecords > requests.size)
    violations.push({ invariant: "I3", what: `${floor.outcomeRecords} outcomes of ${requests.size} requests` });
  return violations;
}

/** I4: a retried unknown ends, and had one effect: Redis counts as many steps as the client saw end. */
export function unknownsResolve(requests: Requests, floor: Floor): Violation[] {
  const violations: Violation[] = [];
  for (const [sequence, steps] of bySequence(requests.values())) {
    for (const [i, { ask, outcomes }] of steps.entries()) {
      if (outcomes.length > 0) continue;
      const before = steps.slice(0, i).some((step) => step.outcomes.length > 0);
      const after = steps.slice(i + 1).some((step) => step.outcomes.length > 0);
      const where = after ? (before ? "middle" : "prefix") : "suffix";
      violations.push({ invariant: "I4", sequence, request: ask.request, what: `never resolved (lost ${where})` });
    }
    const expected = stepsDone(steps);
    const actual = floor.sequences.get(sequence) ?? 0;
    if (expected === undefined || expected === actual) continue;
    violations.push({ invariant: "I4", sequence, what: `${actual} steps done in Redis, ${expected} seen to end` });
  }
  for (const { ask, outcomes } of requests.values()) {
    if (ask.sequence === undefined && outcomes.length === 0)
      violations.push({ invariant: "I4", request: ask.request, what: "never resolved" });
  }
  return violations;
}

/** Steps since the sequence last came to life, 0 when it has ended; undefined when a failure or an unknown hides the number. */
function stepsDone(steps: readonly RequestHistory[]): number | undefined {
  let done = 0;
  for (const { ask, outcomes } of steps) {
    if (outcomes[0]?.kind !== "ok") return undefined;
    done = ask.end === true ? 0 : done + 1;
  }
  return done;
}

/** I5: states are the fold of their inputs, and what has no state is answered from its request alone. */
export function stateIsFold(requests: Requests): Violation[] {
  const wrongAnswers = [...requests.values()].flatMap(({ ask, outcomes }): Violation[] => {
    const wrong = outcomes.find((one) => one.kind === "ok" && one.output !== (ask.answer ?? one.output));
    if (wrong?.kind !== "ok") return [];
    return [{ invariant: "I5", request: ask.request, what: `${wrong.output} instead of ${ask.answer}` }];
  });
  const wrongFolds = [...bySequence(requests.values())].flatMap(([sequence, steps]) => {
    const wrong = checkFold(steps);
    if (wrong === undefined) return [];
    const { request, step, expected, actual, looksLike } = wrong;
    const what = `step ${step}: ${actual} instead of ${expected}; ${looksLike}`;
    return [{ invariant: "I5", sequence, request, what } as const];
  });
  return [...wrongAnswers, ...wrongFolds];
}

/** I9: no sequence ever goes back. */
export function neverBack(samples: readonly CommitSample[], requests: Requests): Violation[] {
  return neighbours(samples, requests).flatMap(([before, sample]) => {
    if (sample.done >= before.done) return [];
    const what = `went back from step ${before.done} (${before.worker}) to ${sample.done} (${sample.worker})`;
    return [{ invariant: "I9", sequence: sample.sequence, what } as const];
  });
}

/** I10: a step is committed by one worker, from one entry. */
export function oneCommitter(samples: readonly CommitSample[], requests: Requests): Violation[] {
  return neighbours(samples, requests).flatMap(([before, sample]) => {
    if (before.done !== sample.done || sample.done === 0) return [];
    if (before.worker === sample.worker && before.entry === sample.entry) return [];
    const [one, other] = [before, sample].map(({ worker, entry }) => `${worker} (${entry})`);
    const what = `step ${sample.done} was committed by ${one} and by ${other}`;
    return [{ invariant: "I10", sequence: sample.sequence, what } as const];
  });
}

/** Each sample with the next of its sequence. Sequences that begin anew under the same id count from 1 again, so they are left out. */
function neighbours(samples: readonly CommitSample[], requests: Requests): [CommitSample, CommitSample][] {
  const begunAnew = [...requests.values()].filter(({ ask }) => ask.start === true && (ask.step ?? 1) > 1);
  const reborn = new Set(begunAnew.map(({ ask }) => ask.sequence));
  const latest = new Map<string, CommitSample>();
  const pairs: [CommitSample, CommitSample][] = [];
  for (const sample of samples) {
    if (reborn.has(sample.sequence)) continue;
    const before = latest.get(sample.sequence);
    if (before !== undefined) pairs.push([before, sample]);
    latest.set(sample.sequence, sample);
  }
  return pairs;
}

/** I11: nothing is left over, and exactly the poison was set aside. */
export function cleanFloor(floor: Floor, requests: Requests): Violation[] {
  const violations: Violation[] = [];
  const note = (what: string, sequence?: string) =>
    violations.push({ invariant: "I11", what, ...(sequence === undefined ? {} : { sequence }) });
  if (floor.readyEntries > 0) note(`${floor.readyEntries} ready entries`);
  if (floor.pendingEntries > 0) note(`${floor.pendingEntries} pending entries`);
  for (const key of floor.waitKeys) note(`waiting steps: ${key}`);
  for (const key of floor.runsKeys) note(`counted runs: ${key}`);
  for (const key of floor.keysWithoutTtl) note(`no TTL: ${key}`);
  for (const key of floor.strangeKeys) note(`unknown kind of key: ${key}`);

  const planted = [...requests.values()].filter(({ ask }) => ask.expects === "poison_request");
  const sameStep = (sequence: string | undefined) => planted.filter(({ ask }) => ask.sequence === sequence);
  for (const letter of floor.dead) {
    if (sameStep(letter.sequence).length === 0)
      note(`innocent set aside: step ${letter.step}, ${letter.reason}, ${letter.runs} runs`, letter.sequence);
  }
  for (const { ask } of planted) {
    const letters = floor.dead.filter(({ sequence }) => sequence === ask.sequence).length;
    if (letters !== 1) note(`poison was set aside ${letters} times`, ask.sequence);
  }
  return violations;
}

/** I12: no process grows past its limit. Without samples nothing was proven, and that is a violation too. */
export function bounded(samples: readonly ResourceSample[], limits: ResourceLimits): Violation[] {
  if (samples.length === 0) return [{ invariant: "I12", what: "no resource was sampled" }];
  const worst = new Map<string, ResourceSample>();
  for (const sample of samples) {
    const key = `${sample.name} ${sample.what}`;
    if (sample.value > (worst.get(key)?.value ?? limits[sample.what])) worst.set(key, sample);
  }
  return [...worst].map(([key, { value, what }]) => ({ invariant: "I12", what: `${key}: ${value} > ${limits[what]}` }));
}

/** I13: nobody pays for another's poison, nor for a fault: every failure is one that was asked for. */
export function nobodyElsePays(requests: Requests): Violation[] {
  return [...requests.values()].flatMap(({ ask, outcomes }): Violation[] => {
    const told = outcomes.map((outcome) => (outcome.kind === "ok" ? "ok" : outcome.code));
    const other = told.find((said) => said !== (ask.expects ?? "ok"));
    if (other === undefined) return [];
    return [{ invariant: "I13", request: ask.request, what: `${other} instead of ${ask.expects ?? "a result"}` }];
  });
}
