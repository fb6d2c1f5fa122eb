/**
 * What a worker tells the fleet about itself. Gateways know models only from here, so they need no
 * copy of the model repository.
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
   * True for an input without the batch dimension that the model's other tensors have: requests
   * share a batch only where they give the same of it.
   */
  shared: z.boolean().optional(),
});

export type TensorSpec = Readonly<z.infer<typeof tensorSpec>>;

export const servedModel = z.object({
  name: z.string(),
  version: z.string(),
  platform: z.string(),
  /** 0: the model has no batch dimension. */
  maxBatchSize: z.number().int().nonnegative(),
  inputs: z.array(tensorSpec),
  outputs: z.array(tensorSpec),
  /** What a sequence model says of its sequences. Absent for stateless models. */
  sequence: z
    .object({
      maxIdleMs: z.number().positive(),
      /** Whether the first request of an unknown id begins a sequence without START. Absent: no. */
      implicitStart: z.boolean().optional(),
      /** How many checkpoints of a sequence are kept, the newest included; absent: one. */
      history: z.number().int().positive().optional(),
      /**
       * The versions whose sequences may go on under this one when nobody serves them any more:
       * its states mean the same. `*` stands for all of them. Absent: none.
       */
      takesStatesOf: z.array(z.string()).optional(),
      /**
       * The CORRID control input, if the model has one: its datatype decides which kinds of id it
       * accepts.
       */
      corrid: z.object({ tensor: z.string(), datatype }).optional(),
    })
    .optional(),
  /**
   * Present for generators: models that answer token by token. They take text or chat prompts
   * instead of tensors.
   */
  generator: z
    .object({
      /** The most tokens of prompt and output together. */
      contextLength: z.number().int().positive(),
      vocabSize: z.number().int().positive(),
      /** Whether it has a chat template. */
      chat: z.boolean(),
      /**
       * Whether a config.pbtxt names its text input and output. Absent: a text input of any name is
       * taken.
       */
      namesText: z.boolean().optional(),
      /** The most choices of one request. */
      maxChoices: z.number().int().positive(),
      /** How long a conversation is kept between its turns, in ms. */
      maxIdleMs: z.number().positive(),
      /** The values of generation_config.json: used where the client says nothing. */
      defaults: z.object({
        temperature: z.number().optional(),
        topK: z.number().optional(),
        topP: z.number().optional(),
        minP: z.number().optional(),
        repetitionPenalty: z.number().optional(),
        maxTokens: z.number().int().positive().optional(),
      }),
    })
    .optional(),
  /**
   * What its configuration asks for and Baton ignores, since it changes no answer. Absent if empty.
   */
  warnings: z.array(z.string()).optional(),
  /**
   * How many requests one worker has at once, those that it runs and those that it has ready next.
   * A worker that says so also takes in what is parked (`parking.lua`); absent: it does not.
   */
  takes: z.number().int().positive().optional(),
  /** Where this worker runs it; workers of before do not say. */
  placement: z
    .object({
      /** ONNX Runtime's name of the preferred execution provider. */
      provider: z.string(),
      /** The number of the GPU; absent on the CPU. */
      gpu: z.number().int().nonnegative().optional(),
    })
    .optional(),
  /** The completed ModelConfig as the `/config` endpoint prints it. */
  config: z.record(z.string(), z.unknown()),
  /**
   * Digest of configuration and model file: workers whose digests differ serve different models
   * under one name.
   */
  digest: z.string(),
});

/**
 * The whole shape of a model's tensor, its batch dimension included where it has one; -1 is a
 * variable dimension.
 */
export function fullShape({ maxBatchSize }: Pick<ServedModel, "maxBatchSize">, spec: TensorSpec): readonly number[] {
  return hasRows({ maxBatchSize }, spec) ? [-1, ...spec.dims] : spec.dims;
}

/** Whether the first dimension of a model's tensor counts the rows of a request. */
export function hasRows({ maxBatchSize }: Pick<ServedModel, "maxBatchSize">, { shared }: TensorSpec): boolean {
  return maxBatchSize > 0 && shared !== true;
}

export type ServedModel = Readonly<z.infer<typeof servedModel>>;

const failedModel = z.object({ name: z.string(), version: z.string().optional(), reason: z.string() });

const device = z.object({
  /** ONNX Runtime's name of the execution provider that is preferred here. */
  provider: z.string(),
  /** The number of the GPU among those that the worker sees; absent on the CPU. */
  gpu: z.number().int().nonnegative().optional(),
  /** Of the card or of the software that stands in for one; absent where nothing tells it. */
  name: z.string().optional(),
  /** Of the device, in bytes, when the worker had loaded its models; absent where nothing tells. */
  memory: z.object({ total: z.number(), used: z.number() }).optional(),
});

export const announcement = z.object({
  /** Unique per process start: `<name>.<boot id>`; also the consumer name in every group. */
  worker: z.string(),
  host: z.string(),
  pid: z.number().int(),
  startedAt: z.number(),
  /** What it computes on; workers of before do not say. */
  device: device.optional(),
  models: z.array(servedModel),
  /** Models that could not be loaded, with the reason. */
  failed: z.array(failedModel),
});

export type Announcement = z.infer<typeof announcement>;
