/**
 * Finds the device that a worker computes on: the first provider of the list that runs a model. If
 * no provider does, the worker refuses to start, with the reasons.
 */
import type { Logger } from "pino";
import { UnusableError } from "#shared/exit.js";
import { onCpu, placementText, type Placement, type Provider } from "../onnx/providers.js";
import { makeTurns, type TurnMemory } from "../onnx/turns.js";
import { withoutPaths } from "../onnx/error-text.js";
import { openThread } from "../thread/guard.js";
import { nvidiaCards } from "./card.js";
import { sessionProviders, type Device } from "./device.js";
import type { ProbeOptions, ProbeRequest } from "./protocol.js";

export interface DeviceSettings {
  /** In order of preference. */
  readonly providers: readonly Provider[];
  /** The number of the GPU; undefined for the first. */
  readonly gpu: number | undefined;
}

/** For each provider, the likeliest reason why it cannot run. */
const likely: Readonly<Record<Exclude<Provider, "cpu">, string>> = {
  cuda: "ONNX Runtime's CUDA library, CUDA 12, cuDNN 9 or a card of NVIDIA's is missing",
  tensorrt: "ONNX Runtime's TensorRT library, TensorRT 10, CUDA 12 or a card of NVIDIA's is missing",
  webgpu: "no Vulkan driver offers a GPU that it can use",
};

/**
 * @param onFatal called when a provider hangs or ends the thread that tries it
 * @throws UnusableError with a sentence for the operator if no provider of the settings can run
 */
export async function findDevice(
  settings: DeviceSettings,
  log: Logger,
  onFatal: (reason: string) => void,
): Promise<Device> {
  const { providers, gpu = 0 } = settings;
  const turns = makeTurns();
  if (providers[0] === "cpu") {
    if (settings.gpu !== undefined) {
      throw new UnusableError(`BATON_GPU is ${gpu}, but BATON_PROVIDERS names the CPU first, so no GPU would be used`);
    }
    return { placement: onCpu, gpus: [], orCpu: true, turns };
  }
  const missing: string[] = [];
  const probe = await startProbe(turns, onFatal);
  try {
    for (const name of providers) {
      if (name === "cpu") {
        log.warn({ missing }, "no GPU can be used, models run on the CPU");
        return { placement: onCpu, gpus: [], orCpu: true, turns };
      }
      const placement = { providers: sessionProviders(name, providers), gpu };
      const fault = await probe.faultOf(placement);
      if (fault === undefined) {
        log.info({ placement: placementText(placement), missing }, "execution provider found");
        const gpus = await gpusOf(name, gpu);
        return { placement, gpus, isChosen: settings.gpu !== undefined, orCpu: providers.includes("cpu"), turns };
      }
      missing.push(`${name}${gpu > 0 ? ` on GPU ${gpu}` : ""}: ${likely[name]} (${fault})`);
    }
  } finally {
    await probe.close();
  }
  throw new UnusableError(refusal(providers, missing));
}

/** @param missing the fault of each provider */
export function refusal(providers: readonly Provider[], missing: readonly string[]): string {
  const without = [...providers, "cpu"].join(",");
  return (
    `BATON_PROVIDERS asks for ${providers.join(",")}, and nothing of that is there ` +
    `(with ${without} the worker would go on without a GPU). ${missing.join("; ")}`
  );
}

/** The numbers of the GPUs that can hold models. WebGPU uses only the driver's first GPU. */
async function gpusOf(provider: Provider, gpu: number): Promise<readonly number[]> {
  const cards = provider === "webgpu" ? [] : await nvidiaCards(process.env);
  return cards.length > gpu ? [...cards.keys()] : [gpu];
}

interface Probe {
  /** @returns in the runtime's words why this place can compute nothing; undefined if it can */
  faultOf(placement: Placement): Promise<string | undefined>;
  close(): Promise<void>;
}

async function startProbe(turns: TurnMemory, onFatal: (reason: string) => void): Promise<Probe> {
  const options: ProbeOptions = { turns };
  const module = new URL("./probe-thread.js", import.meta.url);
  const thread = await openThread<ProbeRequest, null, null>(module, options, (reason) =>
    onFatal(`trying execution providers: ${reason}`),
  );
  return {
    async faultOf(placement) {
      if (placement.providers.includes("webgpu") && placement.gpu !== 0) {
        return "WebGPU takes the first card that its driver offers: leave BATON_GPU out, and show the process one card";
      }
      try {
        await thread.ask(placement);
        return undefined;
      } catch (error) {
        return withoutPaths(error instanceof Error ? error.message : String(error)).trim();
      }
    },
    close: () => thread.close(),
  };
}
