/**
 * A worker's announcement of itself and its models. Gateways know models only from announcements,
 * so gateways need no copy of the model repository.
 */
import { z } from "zod";
import { datatypeBytes, type Datatype } from "../model/datatype.js";

const datatype = z.enum(Object.keys(datatypeBytes) as [Datatype, ...Datatype[]]);

const tensorSpec = z.object({
  name: z.string(),
  datatype,
  /** The shape without the batch dimension; -1 is a variable dimension. */
  dims: z.array(z.number().int()),
  /**
   * True for an input without the batch dimension that the model's other tensors have. Requests
   * share a batch only if their values of this input are equal.
   */
  shared: z.boolean().optional(),
  /** Whether a request may leave this input out. Absent: it may not. */
  optional: z.boolean().optional(),
  /** The names of an output's classes, by index; absent if they have none. */
  labels: z.array(z.string()).optional(),
});

export type TensorSpec = Readonly<z.infer<typeof tensorSpec>>;

const generatorFacts = z.object({
  /** The most tokens of prompt and output together. */
  contextLength: z.number().int().positive(),
  vocabSize: z.number().int().positive(),
  /** Whether the model has a chat template. */
  chat: z.boolean(),
  /**
   * Whether a config.pbtxt names the model's text input and output. Absent: any name of a text
   * input is accepted.
   */
  namesText: z.boolean().optional(),
  /** The most choices of a request. */
  maxChoices: z.number().int().positive(),
  /** How long to keep a conversation between turns, in ms. */
  maxIdleMs: z.number().positive(),
  /** The values of generation_config.json: defaults for values that the client omits. */
  defaults: z.object({
    temperature: z.number().optional(),
    topK: z.number().optional(),
    topP: z.number().optional(),
    minP: z.number().optional(),
    repetitionPenalty: z.number().optional(),
    maxTokens: z.number().int().positive().optional(),
  }),
});

export const servedModel = z.object({
  name: z.string(),
  version: z.string(),
  platform: z.string(),
  /** 0: the model has no batch dimension. */
  maxBatchSize: z.number().int().nonnegative(),
  inputs: z.array(tensorSpec),
  outputs: z.array(tensorSpec),
  /** How a sequence model treats sequences. Absent for stateless models. */
  sequence: z
    .object({
      maxIdleMs: z.number().positive(),
      /** Whether the first request of an unknown id begins a sequence without START. Absent: no. */
      implicitStart: z.boolean().optional(),
      /**
       * Whether a request without an id is a sequence of its own, of one request. Absent: every
       * request needs an id.
       */
      iterative: z.boolean().optional(),
      /** How many checkpoints to keep for each sequence, the newest included; absent: one. */
      history: z.number().int().positive().optional(),
      /**
       * Versions whose states have the same meaning. After the last worker of such a version is
       * gone, this version continues the sequences. `*` means all versions. Absent: none.
       */
      takesStatesOf: z.array(z.string()).optional(),
      /**
       * The CORRID control input, if the model has one. Its datatype decides which kinds of id the
       * model accepts.
       */
      corrid: z.object({ tensor: z.string(), datatype }).optional(),
      /**
       * The states of an ensemble's steps, which its own configuration does not have, with all
       * dimensions. Absent for other models.
       */
      states: z.array(z.object({ input: z.string(), datatype, dims: z.array(z.number()) })).optional(),
      /**
       * The model of the step of an ensemble that refusals of a sequence name: the first that needs
       * an id, otherwise the first with sequences. Absent for other models.
       */
      firstStep: z.string().optional(),
    })
    .optional(),
  /** Whether the model gives any number of answers to a request. Absent: it gives one. */
  decoupled: z.boolean().optional(),
  /**
   * Present for generators: models that answer token by token. Generators take text or chat prompts
   * instead of tensors.
   */
  generator: generatorFacts.optional(),
  /**
   * Present for an ensemble with a generator among its steps: the facts of that generator. Its
   * requests may have sampling parameters beside the tensors.
   */
  samples: generatorFacts.optional(),
  /**
   * Whether gateways answer a request with the answer of an earlier request that was equal
   * (`response_cache`). Absent: they do not.
   */
  cachesAnswers: z.boolean().optional(),
  /** Configuration that Baton ignores, because it changes no answer. Absent if empty. */
  warnings: z.array(z.string()).optional(),
  /**
   * How many requests a worker holds at once, running and ready to run. A worker that announces
   * this number also takes parked requests (`parking.lua`). Absent: the worker takes no parked
   * requests.
   */
  takes: z.number().int().positive().optional(),
  /** The device that runs the model. Older workers do not announce it. */
  placement: z
    .object({
      /** ONNX Runtime's name of the preferred execution provider. */
      provider: z.string(),
      /** The number of the GPU; absent on the CPU. */
      gpu: z.number().int().nonnegative().optional(),
    })
    .optional(),
  /** Bytes of the files with its weights. Older workers do not announce it. */
  weightBytes: z.number().int().nonnegative().optional(),
  /** The completed ModelConfig as the `/config` endpoint prints it. */
  config: z.record(z.string(), z.unknown()),
  /**
   * Digest of configuration and model file. If the digests of two workers differ, the workers serve
   * different models under one name.
   */
  digest: z.string(),
});

/**
 * The whole shape of a model's tensor, with the batch dimension if there is one; -1 is a variable
 * dimension.
 */
export function fullShape({ maxBatchSize }: Pick<ServedModel, "maxBatchSize">, spec: TensorSpec): readonly number[] {
  return hasRows({ maxBatchSize }, spec) ? [-1, ...spec.dims] : spec.dims;
}

/** Whether the answers to a model's requests are records of a log. */
export function hasStreams({ generator, decoupled }: Pick<ServedModel, "generator" | "decoupled">): boolean {
  return generator !== undefined || decoupled === true;
}

/** Whether the first dimension of a model's tensor counts the rows of a request. */
export function hasRows({ maxBatchSize }: Pick<ServedModel, "maxBatchSize">, { shared }: TensorSpec): boolean {
  return maxBatchSize > 0 && shared !== true;
}

export type ServedModel = Readonly<z.infer<typeof servedModel>>;

const failedModel = z.object({ name: z.string(), version: z.string().optional(), reason: z.string() });

const device = z.object({
  /** ONNX Runtime's name of the preferred execution provider. */
  provider: z.string(),
  /** The number of the GPU among the GPUs that the worker sees; absent on the CPU. */
  gpu: z.number().int().nonnegative().optional(),
  /** The name of the card, or of the software that emulates a card; absent if unknown. */
  name: z.string().optional(),
  /**
   * The device's memory in bytes, measured after the worker loaded the models; absent if unknown.
   */
  memory: z.object({ total: z.number(), used: z.number() }).optional(),
});

export const announcement = z.object({
  /** Unique per process start: `<name>.<boot id>`; also the consumer name in every group. */
  worker: z.string(),
  host: z.string(),
  pid: z.number().int(),
  startedAt: z.number(),
  /** The worker's device. Older workers do not announce it. */
  device: device.optional(),
  models: z.array(servedModel),
  /** Models that the worker failed to load, with the reason. */
  failed: z.array(failedModel),
  /** Of Baton. Older workers do not announce it. */
  version: z.string().optional(),
  /** The worker whose place it has taken, which only finishes its work. Absent: none. */
  replaces: z.string().optional(),
  /** How it follows the fleet's wish; absent unless clients say which models are loaded. */
  obeys: z
    .object({
      /** The number of the wish that it has read (`queue/wish.ts`). */
      number: z.number().int().nonnegative(),
      /** The models of its repository that it does not load. */
      idle: z.array(z.object({ name: z.string(), wasUnloaded: z.boolean() })),
    })
    .optional(),
  /** The address of its metrics, with the port. Absent if it shows none, as older workers do. */
  metrics: z.string().optional(),
});

export type Announcement = z.infer<typeof announcement>;
