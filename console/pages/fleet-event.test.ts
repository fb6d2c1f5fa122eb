import { expect, it } from "vitest";
import { eventOf } from "./fleet-event.js";

const at = "2026-11-29T12:00:00.000Z";
const textOf = (name: string, facts: object): string => eventOf("g.1", name, JSON.stringify({ at, ...facts })).text;

it("an event of the fleet is shown in words", () => {
  const worker = { worker: "w", host: "h" };
  expect(eventOf("g.1", "worker.joined", JSON.stringify({ at, ...worker }))).toEqual({
    id: "g.1",
    kind: "good",
    name: "worker.joined",
    at,
    text: "Worker w (h) has joined",
  });
  expect(textOf("worker.left", worker)).toBe("Worker w (h) has left");
  expect(textOf("worker.lost", worker)).toBe("Worker w (h) is lost");
  expect(textOf("takeover", { model: "m", version: "1", count: 1_200 })).toBe(
    "Other workers took over 1,200 requests of m 1",
  );
  expect(textOf("model.served", { model: "m", version: "1" })).toBe("Model m 1 is served");
  expect(textOf("model.retired", { model: "m", version: "1" })).toBe("Model m 1 is served no longer");
  expect(textOf("dead.added", { model: "m", count: 1 })).toBe("A worker could not run 1 request of m, now set aside");
  expect(textOf("gone_back", { error: "e" })).toBe("Redis lost what it had acknowledged: e");
});

it("an unknown event is shown with its facts", () => {
  expect(textOf("tea", { cups: 2 })).toBe(`{"at":"${at}","cups":2}`);
});
