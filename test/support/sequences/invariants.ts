/**
 * Invariants of sequences that hold under any fault. Each invariant is a pure function from
 * evidence to violations. No invariant may stay silent on evidence that it cannot read, because
 * unseen evidence proves nothing.
 */
import { isRight } from "../doors/ask.js";
import { neverBack, oneCommitter } from "./commits.js";
import { checkFold } from "./fold.js";
import type { CommitSample, Floor, ResourceLimits, ResourceSample } from "./facts.js";
import { bySequence, byRequest, type Event, type RequestHistory, type Requests } from "./history.js";
import type { Violation } from "./violation.js";

/**
 * Every accepted request has an outcome. A refusal that names a loss is a loss, however polite its
 * text.
 */
export function everyRequestEnds(requests: Requests, floor: Floor): Violation[] {
  const lossCodes = new Set(["request_lost", "state_lost", "state_corrupt", "expired"]);
  const violations: Violation[] = floor.openOutcomes.map((key) => ({
    invariant: "every request ends",
    what: `accepted, but without outcome at quiescence: ${key}`,
  }));
  for (const { ask, submits, endings, outcomes } of requests.values()) {
    const loss = outcomes.find((outcome) => outcome.kind === "fail" && lossCodes.has(outcome.code));
    if (loss?.kind === "fail" && !isRight(ask, loss.code))
      violations.push({ invariant: "every request ends", request: ask.request, what: `ended as ${loss.code}` });
    if (endings.length < submits.length)
      violations.push({
        invariant: "every request ends",
        request: ask.request,
        what: "the client still waits for an answer",
      });
  }
  return violations;
}

/** All readings of a request, through any gateway, say the same. */
export function oneOutcome(requests: Requests): Violation[] {
  return [...requests.values()].flatMap(({ ask, outcomes }) => {
    const told = new Set(outcomes.map((one) => (one.kind === "ok" ? `ok ${one.output}` : `fail ${one.code}`)));
    if (told.size < 2) return [];
    return [
      { invariant: "one outcome", request: ask.request, what: `different outcomes: ${[...told].join(" / ")}` } as const,
    ];
  });
}

/** No outcome exists without a request, and no answer belongs to another request. */
export function noPhantom(events: readonly Event[], requests: Requests, floor: Floor, elsewhere = 0): Violation[] {
  const violations: Violation[] = [];
  for (const event of events) {
    if (event.kind === "submit") continue;
    if (!requests.has(event.request))
      violations.push({ invariant: "no phantom", request: event.request, what: "an ending without a submit" });
    if (event.kind === "ok" && event.echoedId !== event.request)
      violations.push({
        invariant: "no phantom",
        request: event.request,
        what: `answered with id ${event.echoedId ?? "(none)"}`,
      });
  }
  // Each attempt without a key is a request of its own.
  const attempts = [...requests.values()].map(({ ask, submits }) => (ask.unkeyed === true ? submits.length : 1));
  const asked = attempts.reduce((sum, count) => sum + count, elsewhere);
  if (floor.outcomeRecords > asked)
    violations.push({ invariant: "no phantom", what: `${floor.outcomeRecords} outcomes of ${asked} requests` });
  return violations;
}

/**
 * A request with an unknown outcome ends on a retry, and had a single effect: Redis counts as many
 * steps as the client saw end.
 */
export function unknownsResolve(requests: Requests, floor: Floor): Violation[] {
  const violations: Violation[] = [];
  for (const [sequence, steps] of bySequence(requests.values())) {
    for (const [i, { ask, outcomes }] of steps.entries()) {
      if (outcomes.length > 0 || ask.unkeyed === true) continue;
      const before = steps.slice(0, i).some((step) => step.outcomes.length > 0);
      const after = steps.slice(i + 1).some((step) => step.outcomes.length > 0);
      const where = after ? (before ? "middle" : "prefix") : "suffix";
      violations.push({
        invariant: "unknowns resolve",
        sequence,
        request: ask.request,
        what: `never resolved (lost ${where})`,
      });
    }
    const expected = stepsDone(steps);
    const actual = floor.sequences.get(sequence) ?? 0;
    if (expected === undefined || expected === actual) continue;
    violations.push({
      invariant: "unknowns resolve",
      sequence,
      what: `${actual} steps done in Redis, ${expected} seen to end`,
    });
  }
  for (const { ask, outcomes } of requests.values()) {
    if (ask.sequence === undefined && outcomes.length === 0)
      violations.push({ invariant: "unknowns resolve", request: ask.request, what: "never resolved" });
  }
  return violations;
}

/**
 * How many steps were done since the sequence last came to life. 0 if the sequence has ended;
 * undefined if a failure or an unknown outcome hides the number.
 */
function stepsDone(steps: readonly RequestHistory[]): number | undefined {
  let done = 0;
  for (const { ask, outcomes } of steps) {
    if (outcomes[0]?.kind !== "ok") return undefined;
    done = ask.end === true ? 0 : done + 1;
  }
  return done;
}

/** States are the fold of their inputs, and a stateless answer follows from its request alone. */
export function stateIsFold(requests: Requests): Violation[] {
  const wrongAnswers = [...requests.values()].flatMap(({ ask, outcomes }): Violation[] => {
    const wrong = outcomes.find((one) => one.kind === "ok" && one.output !== (ask.answer ?? one.output));
    if (wrong?.kind !== "ok") return [];
    return [{ invariant: "state is the fold", request: ask.request, what: `${wrong.output} instead of ${ask.answer}` }];
  });
  const wrongFolds = [...bySequence(requests.values())].flatMap(([sequence, steps]) => {
    const wrong = checkFold(steps);
    if (wrong === undefined) return [];
    const { request, step, expected, actual, looksLike } = wrong;
    const what = `step ${step}: ${actual} instead of ${expected}; ${looksLike}`;
    return [{ invariant: "state is the fold", sequence, request, what } as const];
  });
  return [...wrongAnswers, ...wrongFolds];
}

/**
 * A single version of the model answers a sequence from a START to its end, even if a roll-out
 * happens meanwhile.
 */
export function oneVersion(requests: Requests): Violation[] {
  return [...bySequence(requests.values())].flatMap(([sequence, steps]): Violation[] => {
    let version: string | undefined;
    for (const { ask, outcomes } of steps) {
      if (ask.start === true) version = undefined;
      const told = outcomes.flatMap((outcome) => (outcome.kind === "ok" ? [outcome.version] : []));
      version ??= told[0];
      const other = told.find((one) => one !== version);
      if (other === undefined) continue;
      const what = `step ${ask.step} was answered by version ${other}, after version ${version}`;
      return [{ invariant: "one version to the end", sequence, request: ask.request, what }];
    }
    return [];
  });
}

/** Nothing is left over in Redis, and the workers set aside exactly the poison. */
export function cleanFloor(floor: Floor, requests: Requests): Violation[] {
  const violations: Violation[] = [];
  const note = (what: string, sequence?: string) =>
    violations.push({ invariant: "nothing left over", what, ...(sequence === undefined ? {} : { sequence }) });
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

/**
 * No process grows past its limit. A run without samples proves nothing, which is a violation, too.
 */
export function bounded(samples: readonly ResourceSample[], limits: ResourceLimits): Violation[] {
  if (samples.length === 0) return [{ invariant: "bounded", what: "no resource was sampled" }];
  const worst = new Map<string, ResourceSample>();
  for (const sample of samples) {
    const key = `${sample.name} ${sample.what}`;
    if (sample.value > (worst.get(key)?.value ?? limits[sample.what])) worst.set(key, sample);
  }
  return [...worst].map(([key, { value, what }]) => ({
    invariant: "bounded",
    what: `${key}: ${value} > ${limits[what]}`,
  }));
}

/** No request fails because of another's poison or a fault: the plan asked for every failure. */
export function nobodyElsePays(requests: Requests): Violation[] {
  return [...requests.values()].flatMap(({ ask, outcomes }): Violation[] => {
    const told = outcomes.map((outcome) => (outcome.kind === "ok" ? "ok" : outcome.code));
    const other = told.find((said) => !isRight(ask, said));
    if (other === undefined) return [];
    return [
      { invariant: "nobody else pays", request: ask.request, what: `${other} instead of ${ask.expects ?? "a result"}` },
    ];
  });
}

export interface Evidence {
  readonly events: readonly Event[];
  /** How many requests the fleet got that are not among these events. */
  readonly elsewhere?: number;
  readonly floor: Floor;
  readonly commits: readonly CommitSample[];
  readonly resources: readonly ResourceSample[];
  readonly limits: ResourceLimits;
}

/**
 * Checks all invariants at once. An empty list proves only as much as there is evidence, so a
 * report names the size of the evidence, too.
 */
export function check({ events, elsewhere, floor, commits, resources, limits }: Evidence): Violation[] {
  const requests = byRequest(events);
  return [
    ...everyRequestEnds(requests, floor),
    ...oneOutcome(requests),
    ...noPhantom(events, requests, floor, elsewhere),
    ...unknownsResolve(requests, floor),
    ...stateIsFold(requests),
    ...oneVersion(requests),
    ...neverBack(commits, requests),
    ...oneCommitter(commits, requests),
    ...cleanFloor(floor, requests),
    ...bounded(resources, limits),
    ...nobodyElsePays(requests),
  ];
}
