import { expect, it } from "vitest";
import { mayAsk } from "./board.js";

it("lets operators look, try again, try now, pause and resume", () => {
  const queue = "/api/queues/deliveries";
  for (const path of ["/", "/queue/deliveries", "/api/queues", `${queue}/1`]) expect(mayAsk("GET", path)).toBe(true);
  for (const path of [
    "/api/queues/pause",
    `${queue}/resume`,
    `${queue}/promote`,
    `${queue}/retry/failed`,
    `${queue}/msg_1.2-0/retry`,
    `${queue}/msg_1.2-0/promote`,
    `${queue}/job-schedulers/1/run`,
  ]) {
    expect([path, mayAsk("PUT", path)]).toEqual([path, true]);
  }
});

it("refuses all else", () => {
  const queue = "/api/queues/deliveries";
  for (const path of [
    `${queue}/retry/completed`,
    `${queue}/empty`,
    `${queue}/obliterate`,
    `${queue}/1/clean`,
    `${queue}/clean/failed`,
    `${queue}/job-schedulers/1/remove`,
    `${queue}/rate-limit`,
    "/pause",
    "/api/pause",
  ]) {
    expect([path, mayAsk("PUT", path)]).toEqual([path, false]);
  }
  expect(mayAsk("POST", `${queue}/add`)).toBe(false);
  expect(mayAsk("POST", `${queue}/pause`)).toBe(false);
  expect(mayAsk("DELETE", "/api/queues")).toBe(false);
});
