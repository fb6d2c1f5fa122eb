/** What a worker tells the fleet about itself: the gateway knows models only from here, so it needs no copy of the repository. */
import { z } from "zod";
import { datatypeBytes, type Datatype } from "#shared/model/datatype.js";

const datatype = z.enum(Object.keys(datatypeBytes) as [Datatype, ...Datatype[]]);

const tensorSpec = z.object({
  name: z.string(),
  datatype,
  /** Without the batch dimension; -1 is variable. */
  dims: z.array(z.number().int()),
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
  /** Absent for stateless models. */
  sequence: z
    .object({
      maxIdleMs: z.number().positive(),
      /** The CORRID control, if the model takes one: decides which kinds of id it accepts. */
      corrid: z.object({ tensor: z.string(), datatype }).optional(),
    })
    .optional(),
  /** Present for generators: decoders that answer token by token. They take text or chat prompts instead of tensors. */
  generator: z
    .object({
      /** Most tokens of prompt and output together. */
      contextLength: z.number().int().positive(),
      vocabSize: z.number().int().positive(),
      /** Whether it has a chat template. */
      chat: z.boolean(),
      /** Most choices of one request. */
      maxChoices: z.number().int().positive(),
      /** How long a conversation is kept between its turns. */
      maxIdleMs: z.number().positive(),
      /** From generation_config.json: used where the client says nothing. */
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
  /** What its configuration asks for in vain, though no answer is other for it. Absent if empty. */
  warnings: z.array(z.string()).optional(),
  /** The completed ModelConfig as the `/config` endpoint prints it. */
  config: z.record(z.string(), z.unknown()),
  /** Of config and model file: workers whose digests differ serve different models under one name. */
  digest: z.string(),
});

export type ServedModel = Readonly<z.infer<typeof servedModel>>;

const failedModel = z.object({ name: z.string(), version: z.string().optional(), reason: z.string() });

export const announcement = z.object({
  /** Unique per process start: `<name>.<boot id>`; also the consumer name in every group. */
  worker: z.string(),
  host: z.string(),
  pid: z.number().int(),
  startedAt: z.number(),
  models: z.array(servedModel),
  /** Models that could not be loaded, with the reason. */
  failed: z.array(failedModel),
});

export type Announcement = z.infer<typeof announcement>;
