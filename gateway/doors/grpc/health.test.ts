import { PassThrough } from "node:stream";
import type { ServerWritableStream } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { HealthWatchers } from "./health.js";
import type { Health } from "./methods.js";

const watcher = (): ServerWritableStream<object, Health> =>
  new PassThrough({ objectMode: true }) as unknown as ServerWritableStream<object, Health>;

it("keeps no watcher that has left before it was added", () => {
  const watchers = new HealthWatchers(() => true);
  for (let i = 0; i < 2_000; i++) {
    const gone = watcher();
    gone.destroy();
    watchers.add(gone);
  }
  const here = watcher();
  watchers.add(here);
  expect(here.writableNeedDrain).toBe(false);
  watchers.close();
});
