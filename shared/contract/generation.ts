/**
 * What a generator is asked for, as the gateway validated it and the queue carries it (in the
 * frame's `meta.generation`), and the records that its stream is made of. Only workers have the
 * tokenizer and the chat template, so a prompt travels as it was given.
 */
import { z } from "zod";
import { isErrorCode } from "../errors.js";

const token = z.number().int().nonnegative();

/** A message as in OpenAI's chat API. A template may read any of its members. */
const chatMessage = z.looseObject({ role: z.string(), content: z.unknown() });

export const promptSpec = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  z.object({ kind: z.literal("tokens"), tokens: z.array(token) }),
  z.object({
    kind: z.literal("chat"),
    messages: z.array(chatMessage),
    addGenerationPrompt: z.boolean(),
  }),
]);

export type PromptSpec = z.infer<typeof promptSpec>;

/** How tokens are sampled. The gateway validates it; the names are vLLM's in camel case. */
export const samplingSpec = z.object({
  /** 0: the likeliest token is taken always. */
  temperature: z.number().nonnegative(),
  /** 0: no limit. */
  topK: z.number().int().nonnegative(),
  /** In (0, 1]; 1: no limit. */
  topP: z.number(),
  /** In [0, 1]: tokens that are less likely than this share of the likeliest one are left out. */
  minP: z.number(),
  /** 1: no penalty. It counts prompt and output, as in Keskar et al. 2019 (arXiv:1909.05858). */
  repetitionPenalty: z.number().positive(),
  /** 0: no penalty. This and the next count the output alone, as in OpenAI's API. */
  presencePenalty: z.number(),
  frequencyPenalty: z.number(),
  /** Pairs of a token id and what is added to its logit. */
  logitBias: z.array(z.tuple([token, z.number()])),
  /**
   * A whole number below 2^53. The gateway draws one where the client gave none, since a worker
   * that takes over must draw the same tokens.
   */
  seed: z.number().int().nonnegative(),
  /** How many choices are made of one prompt: `n` in OpenAI's API. */
  choices: z.number().int().positive(),
  /**
   * How many alternatives are reported beside each token's own log probability; null: not even its
   * own is.
   */
  logprobs: z.number().int().nonnegative().nullable(),
  stop: z.array(z.string()),
  stopTokens: z.array(token),
  ignoreEos: z.boolean(),
  minTokens: z.number().int().nonnegative(),
  /** null: tokens are made until the context is full. */
  maxTokens: z.number().int().positive().nullable(),
});

export type SamplingSpec = z.infer<typeof samplingSpec>;

export const generationSpec = z.object({
  prompt: promptSpec,
  sampling: samplingSpec,
  /**
   * How long the answer may go on past the deadline of its first token, in ms; absent: to its
   * end.
   */
  restMs: z.number().int().nonnegative().optional(),
});

export type GenerationSpec = z.infer<typeof generationSpec>;

/**
 * The labels of the job that a generation runs, as tokens of the subjects on which its records are
 * published as well (the frame's `meta.labels`, beside the spec; absent where there are none).
 */
export const labelTokens = z
  .array(z.string().regex(/^[\w-]{22}$/))
  .max(16)
  .optional();

/** A token that might have been sampled, and its log probability. */
const tokenChance = z.object({
  id: token,
  /** The token as text; bytes that are no whole character read as U+FFFD. */
  token: z.string(),
  bytes: z.array(z.number().int()),
  logprob: z.number(),
});

export type TokenChance = z.infer<typeof tokenChance>;

/** A token that was sampled, and the likeliest ones at its place. */
const tokenLogprob = tokenChance.extend({ top: z.array(tokenChance) });

export type TokenLogprob = z.infer<typeof tokenLogprob>;

/** What one step added to one choice. */
const choiceDelta = z.object({
  index: z.number().int().nonnegative().describe("Which choice of the request this is, from 0."),
  text: z
    .string()
    .describe(
      "What its text gained: whole characters only, and nothing that may turn out to begin a stop string. " +
        "For these reasons it is often empty.",
    ),
  tokens: z.array(token).describe("What was sampled: one token; none in a record that only ends the choice."),
  logprobs: z.array(tokenLogprob).optional(),
  finish_reason: z.enum(["stop", "length"]).optional().describe("Present in the choice's last delta."),
});

export type ChoiceDelta = z.infer<typeof choiceDelta>;

/**
 * One record of a token log. Record i is step i: one token for every choice that still runs. Its
 * JSON bytes are written once, by the worker that made it, and are the same in the log, on NATS, in
 * a server-sent event, in a WebSocket message and in a durable stream. The descriptions are part of
 * the public contract (`GET /v2/asyncapi.json`).
 */
export const tokenRecord = z.object({
  index: z
    .number()
    .int()
    .nonnegative()
    .describe("The record's place in its stream, from 0 and without gaps; a gap means that messages were lost."),
  choices: z.array(choiceDelta),
  final: z.literal(true).optional().describe("Present in the last record of a stream, and in no other."),
  reason: z
    .enum(["finished", "cancelled", "expired", "error"])
    .optional()
    .describe("How the stream ended; present in the last record."),
  usage: z.object({ prompt_tokens: z.number().int(), completion_tokens: z.number().int() }).optional(),
  error: z
    .object({ code: z.string().transform((code) => (isErrorCode(code) ? code : "internal")), message: z.string() })
    .optional()
    .describe("Present where the reason is not `finished`."),
});

export type TokenRecord = z.infer<typeof tokenRecord>;
