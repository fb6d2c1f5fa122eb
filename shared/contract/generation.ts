/**
 * A request to a generator as the gateway validated it and the queue carries it (in the frame's
 * `meta.generation`), and the records of the answer's stream. Only workers have the tokenizer and
 * the chat template, so the queue carries the client's own prompt.
 */
import { z } from "zod";
import { isErrorCode } from "../errors.js";
import { answerOutput } from "./answer-record.js";

const token = z.number().int().nonnegative();

/** A message as in OpenAI's chat API. A template may read any member. */
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

/** How to sample tokens, validated by the gateway. The names are vLLM's in camel case. */
export const samplingSpec = z.object({
  /** 0: always the likeliest token. */
  temperature: z.number().nonnegative(),
  /** 0: no limit. */
  topK: z.number().int().nonnegative(),
  /** In (0, 1]; 1: no limit. */
  topP: z.number(),
  /**
   * In [0, 1]: leaves out tokens with less than this share of the likeliest token's probability.
   */
  minP: z.number(),
  /** 1: no penalty. Counts prompt and output, as in Keskar et al. 2019 (arXiv:1909.05858). */
  repetitionPenalty: z.number().positive(),
  /** 0: no penalty. This penalty and the next count the output alone, as in OpenAI's API. */
  presencePenalty: z.number(),
  frequencyPenalty: z.number(),
  /** Pairs of a token id and a number to add to the token's logit. */
  logitBias: z.array(z.tuple([token, z.number()])),
  /**
   * A whole number below 2^53. If the client gives no seed, the gateway draws a number, because a
   * worker that takes over must draw the same tokens.
   */
  seed: z.number().int().nonnegative(),
  /** How many choices to make from a prompt: `n` in OpenAI's API. */
  choices: z.number().int().positive(),
  /**
   * How many alternatives to report beside each token's log probability; null: report no log
   * probabilities.
   */
  logprobs: z.number().int().nonnegative().nullable(),
  stop: z.array(z.string()),
  stopTokens: z.array(token),
  ignoreEos: z.boolean(),
  minTokens: z.number().int().nonnegative(),
  /** null: until the context is full. */
  maxTokens: z.number().int().positive().nullable(),
});

export type SamplingSpec = z.infer<typeof samplingSpec>;

export const generationSpec = z.object({
  prompt: promptSpec,
  sampling: samplingSpec,
  /**
   * How long generation may continue after the deadline of the first token, in ms; absent: to the
   * end of the answer.
   */
  restMs: z.number().int().nonnegative().optional(),
});

export type GenerationSpec = z.infer<typeof generationSpec>;

/**
 * The labels of a generation's job, as tokens of further subjects for the records (the frame's
 * `meta.labels`, beside the spec; absent if there are none).
 */
export const labelTokens = z
  .array(z.string().regex(/^[\w-]{22}$/))
  .max(16)
  .optional();

const usualShare = { level: 1, weight: 1 };

/**
 * The priority level of the generation, from 1, which goes first, and the weight of its tenant at
 * the admission (the frame's `meta.share`, beside the spec). Absent if both are 1, and in entries
 * from gateways of earlier versions.
 */
export const generationShare = z
  .object({ level: z.number().int().positive(), weight: z.number().positive() })
  .catch(usualShare);

export type GenerationShare = z.infer<typeof generationShare>;

/** A possible token and its log probability. */
const tokenChance = z.object({
  id: token,
  /** The token as text, with U+FFFD for bytes that form no whole character. */
  token: z.string(),
  bytes: z.array(z.number().int()),
  logprob: z.number(),
});

export type TokenChance = z.infer<typeof tokenChance>;

/** The sampled token, and the likeliest tokens at the same position. */
const tokenLogprob = tokenChance.extend({ top: z.array(tokenChance) });

export type TokenLogprob = z.infer<typeof tokenLogprob>;

/** The part of a choice that a step adds. */
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
 * A record of a token log. Record i is step i: a token for every choice that still runs. The worker
 * that makes the record writes the JSON bytes once. The bytes are the same in the log, on NATS, in
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
  outputs: z.array(answerOutput).optional().describe("What a run of a decoupled tensor model gave; it has no choices."),
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
