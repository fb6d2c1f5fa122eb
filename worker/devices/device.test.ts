import { describe, expect, it } from "vitest";
import { onCpu, type Provider } from "../onnx/providers.js";
import { makeTurns } from "../onnx/turns.js";
import { instancePlaces, placementsOf, sessionProviders, type Device, type WantedPlace } from "./device.js";

const turns = makeTurns();
const cpu: Device = { placement: onCpu, gpus: [], orCpu: true, turns };
const cuda = (gpu: number, orCpu = false): Device => ({
  placement: { providers: ["cuda"], gpu },
  gpus: [0, 1, 2],
  orCpu,
  turns,
});
const on = (gpu: number) => ({ providers: ["cuda"], gpu });
const wanted = (kind: WantedPlace["kind"], gpus: number[] = [], needsGpu = false) => ({ kind, gpus, needsGpu });

describe("placementsOf", () => {
  it.each<[what: string, device: Device, wanted: WantedPlace | undefined, places: unknown[]]>([
    ["a worker without a GPU", cpu, undefined, [onCpu]],
    ["a model without an instance group", cuda(1), undefined, [on(1)]],
    ["a model for the CPU", cuda(0), wanted("KIND_CPU"), [onCpu]],
    ["a model for any GPU", cuda(1), wanted("KIND_GPU", [0, 1, 2]), [on(1)]],
    ["a model for other GPUs than the worker's", cuda(0), wanted("KIND_GPU", [2, 1]), [on(2)]],
    ["a model that leaves it to the worker", cuda(1), wanted("KIND_MODEL"), [on(1)]],
    ["settings that allow the CPU", cuda(0, true), wanted("KIND_GPU", [0]), [on(0), onCpu]],
    ["a model that allows no CPU", cuda(0, true), wanted("KIND_GPU", [0], true), [on(0)]],
  ])("%s", (_, device, place, places) => {
    expect(placementsOf(device, place)).toEqual(places);
  });
});

describe("instancePlaces", () => {
  const group = (kind: WantedPlace["kind"], count: number, named: number[] = [], needsGpu = false) => ({
    ...wanted(kind, named.length === 0 && kind === "KIND_GPU" ? [0, 1, 2] : named, needsGpu),
    count,
    named,
  });
  const chosen = { ...cuda(1), isChosen: true };
  it.each<[what: string, device: Device, groups: ReturnType<typeof group>[], places: unknown[][]]>([
    ["a model without a group", cpu, [], [[onCpu]]],
    ["two instances on the CPU", cpu, [group("KIND_CPU", 2)], [[onCpu, onCpu]]],
    ["two groups", cuda(0), [group("KIND_GPU", 1), group("KIND_CPU", 2)], [[on(0), onCpu, onCpu]]],
    ["instances on any GPU", cuda(1), [group("KIND_GPU", 2)], [[on(1), on(1)]]],
    ["several GPUs", cuda(0), [group("KIND_GPU", 2, [0, 2])], [[on(0), on(0), on(2), on(2)]]],
    ["several GPUs and a worker for one", chosen, [group("KIND_GPU", 2, [0, 1])], [[on(1), on(1)]]],
    ["several GPUs and a worker for another", chosen, [group("KIND_GPU", 1, [0, 2])], [[on(0), on(2)]]],
    [
      "settings that allow the CPU",
      cuda(0, true),
      [group("KIND_GPU", 1, [0, 1]), group("KIND_CPU", 1)],
      [
        [on(0), on(1), onCpu],
        [onCpu, onCpu, onCpu],
      ],
    ],
    ["a model that allows no CPU", cuda(0, true), [group("KIND_GPU", 2, [0], true)], [[on(0), on(0)]]],
  ])("%s", (_, device, groups, places) => {
    expect(instancePlaces(device, groups)).toEqual(places);
  });

  it("are limited by their number in this worker, whichever GPUs the worker sees", () => {
    const placesOf = (device: Device, groups: ReturnType<typeof group>[]) => instancePlaces(device, groups)[0].length;
    expect(placesOf(cuda(0), [group("KIND_GPU", 32)])).toBe(32);
    expect(placesOf(chosen, [group("KIND_GPU", 32, [0, 1, 2])])).toBe(32);
    expect(() => placesOf(cuda(0), [group("KIND_GPU", 11, [0, 1, 2])])).toThrow(
      "instance_group asks for 33 instances in each worker, but the most are 32",
    );
    expect(() => placesOf(cpu, [group("KIND_CPU", 2 ** 31 - 1)])).toThrow("2147483647 instances");
  });
});

it.each<[Provider, Provider[], Provider[]]>([
  ["cuda", ["tensorrt", "cuda", "cpu"], ["cuda"]],
  ["tensorrt", ["tensorrt", "cuda", "cpu"], ["tensorrt", "cuda"]],
  ["tensorrt", ["tensorrt", "webgpu"], ["tensorrt"]],
])("a session on %s, of %j, has %j", (found, list, providers) => {
  expect(sessionProviders(found, list)).toEqual(providers);
});
