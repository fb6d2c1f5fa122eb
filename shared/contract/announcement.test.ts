import { expect, it } from "vitest";
import { announcementOf, servedModel } from "../../test/fixtures/served-models.js";
import { announcement } from "./announcement.js";

const old = announcementOf([servedModel("m")]);

it("reads what a worker of before announces, which says nothing of devices", () => {
  expect(announcement.parse(old)).toEqual(old);
});

it("leaves out what a later worker may add", () => {
  const device = { provider: "cuda", gpu: 1, name: "NVIDIA L4", memory: { total: 2, used: 1 } };
  const placement = { provider: "cuda", gpu: 1 };
  const known = { ...old, device, models: [servedModel("m", { placement })] };
  const later = { ...known, device: { ...device, watts: 72 }, models: [{ ...known.models[0], heat: 1 }], moon: "full" };
  expect(announcement.parse(later)).toEqual(known);
});
