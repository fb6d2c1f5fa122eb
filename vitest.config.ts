import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type InlineConfig } from "vitest/node";

/** A file has a fleet of several processes, so a machine of many cores runs out of memory first. */
const cores = Math.min(availableParallelism(), 8);

/** Files that only compute: they start no process, and no broker. */
const computing = ["{cli,console,gateway,worker,shared,infra}", "test/protocols/{kserve,openai}"].map(
  (folder) => `${folder}/**/*.test.ts`,
);

/**
 * Files that measure what their own process holds, or hold much. Each has one to itself. All others
 * stop what they start, so one process runs file after file: to start one and load everything anew
 * takes half a second of a core for each file.
 */
const alone = ["spec/requests", "spec/subscriptions", "protocols/http/bodies"].map(fileOf);

/** The folder decides: these are the tests that break something, and no others. */
const faults = ["test/faults/**/*.test.ts"];

/** Hundreds of connections at once, which beside another file take longer than any patience. */
const flooding = [fileOf("faults/streams/stream-dropped")];

/**
 * The longest files of each command, the longest first. They are begun first, so that none runs
 * alone while a core has nothing left to do. Vitest would begin with the largest if it has never
 * run, as in CI.
 */
const long = [
  "simulation/simulation",
  "spec/request-events",
  "batches/batches",
  "schedules/refused",
  "docs/readme",
  "protocols/http/server",
  "cli/batch",
  "cli/jobs",
  "cli/verbs",
  "schedules/paths",
  "faults/redis/failover",
  "faults/redis/asynchronous-failover",
  "faults/webhooks/frozen",
  "faults/workers/parked",
  "faults/queue/retired-lanes",
  "faults/streams/deadline",
  "faults/streams/stream-gateways",
  "faults/streams/stream-workers",
  "faults/redis/fleet",
  "faults/devices/webgpu",
  "faults/streams/relay",
  "faults/streams/relay-nats",
].map((name) => join(import.meta.dirname, fileOf(name)));

class LongestFirst extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer["sort"]>[0]): ReturnType<BaseSequencer["sort"]> {
    const group = (file: (typeof files)[number]) => file.project.config.sequence.groupOrder;
    const place = ({ moduleId }: (typeof files)[number]) =>
      long.includes(moduleId) ? long.indexOf(moduleId) : Infinity;
    // What it sorts stays as it is where this makes no difference.
    return (await super.sort(files)).sort((a, b) => group(a) - group(b) || compare(place(a), place(b)));
  }
}

const suites = {
  test: [
    project("computing", 0, cores, { include: computing }),
    // These mostly wait, for timers and for processes to start: with one file at a time for each
    // core, the cores would have nothing to do for half of the time.
    project("fleets", 1, cores + 1, {
      include: ["test/**/*.test.ts"],
      exclude: [...computing, ...faults, ...alone],
    }),
    project("alone", 1, cores + 1, { include: alone, isolate: true }),
  ],
  faults: [
    // What one of them has broken must not reach the next, not even late.
    project("faults", 2, cores, { include: faults, exclude: flooding, isolate: true }),
    project("flooding", 3, 1, { include: flooding, isolate: true }),
  ],
};

export default defineConfig({
  resolve: { conditions: ["baton-source"] },
  ssr: { resolve: { conditions: ["baton-source"] } },
  test: {
    // These limits only say when to give up. They are far longer than a test takes on a machine
    // that does much else, so that only a fault meets them.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    globalSetup: ["test/support/fleet/global.ts"],
    // `infra/run-tests.mjs` names a suite. Vitest by itself knows the files of all.
    projects: Object.entries(suites).flatMap(([suite, projects]) =>
      [undefined, suite].includes(process.env["BATON_SUITE"]) ? projects : [],
    ),
  },
});

function project(name: string, groupOrder: number, maxWorkers: number, more: Readonly<Partial<InlineConfig>>) {
  return { extends: true as const, test: { name, isolate: false, maxWorkers, sequence: { groupOrder }, ...more } };
}

function fileOf(name: string): string {
  return `test/${name}.test.ts`;
}

/** Not their difference, which is no number where both are Infinity. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
