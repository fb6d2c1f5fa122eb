/**
 * What a generator is asked for, as the gateway validated it and the queue carries it (in the frame's `meta.generation`), and the records that its stream is
 * made of. The worker owns the tokenizer and the chat template, so a prompt travels as it was given.
 */
import { z } from "zod";
import { isErrorCode } from "#shared/errors.js";

const token = z.number().int().nonnegative();

/** An OpenAI chat message; templates may look at any of its members. */
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

/** Validated by the gateway; the names are vLLM's in camel case. */
export const samplingSpec = z.object({
  /** 0 is greedy. */
  temperature: z.number().nonnegative(),
  /** 0: no limit. */
  topK: z.number().int().nonnegative(),
  /** In (0, 1]. */
  topP: z.number(),
  /** In [0, 1]: tokens less likely than this share of the likeliest are left out. */
  minP: z.number(),
  /** 1: none. Over prompt and output, as in Keskar et al. 2019 (arXiv:1909.05858). */
  repetitionPenalty: z.number().positive(),
  /** 0: none. These two count the output alone, as in OpenAI's API. */
  presencePenalty: z.number(),
  frequencyPenalty: z.number(),
  /** Added to the logits of these token ids. */
  logitBias: z.array(z.tuple([token, z.number()])),
  /** A whole number below 2^53. The gateway draws one where the client gave none: a takeover must draw the same tokens. */
  seed: z.number().int().nonnegative(),
  /** OpenAI's `n`: how many choices are made of one prompt. */
  choices: z.number().int().positive(),
  /** How many alternatives are reported beside each token's own log probability; null: none, not even its own. */
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
   * How long past the deadline of its entry, which is that of its first token, the answer may go
   * on, in ms; absent: to its end.
   */
  restMs: z.number().int().nonnegative().optional(),
});

export type GenerationSpec = z.infer<typeof generationSpec>;

/** What a generation's client reads when it `expired`. */
export const expiredMessages = {
  beforeFirstToken: "Request timeout expired",
  beforeEnd: "the answer was not finished within its total_timeout",
} as const;

const tokenChance = z.object({
  id: token,
  /** The token by itself; bytes that are no whole character read as U+FFFD. */
  token: z.string(),
  bytes: z.array(z.number().int()),
  logprob: z.number(),
});

export type TokenChance = z.infer<typeof tokenChance>;

const tokenLogprob = tokenChance.extend({ top: z.array(tokenChance) });

export type TokenLogprob = z.infer<typeof tokenLogprob>;

/** What one step added to one choice. */
const choiceDelta = z.object({
  index: z.number().int().nonnegative(),
  /** Whole characters only, and nothing that may still turn out to begin a stop string; often empty for that reason. */
  text: z.string(),
  /** What was sampled: one token, or none in a record that only ends the choice. */
  tokens: z.array(token),
  logprobs: z.array(tokenLogprob).optional(),
  /** Present in the choice's last delta. */
  finish_reason: z.enum(["stop", "length"]).optional(),
});

export type ChoiceDelta = z.infer<typeof choiceDelta>;

/**
 * One record of a token log. Record i is step i: one token for every choice that still runs. Its JSON bytes are written once, by the worker that made it, and are
 * the same in the log, on NATS, in an SSE event and in a WebSocket message.
 */
export const tokenRecord = z.object({
  index: z.number().int().nonnegative(),
  choices: z.array(choiceDelta),
  /** Present in the last record alone. */
  final: z.literal(true).optional(),
  reason: z.enum(["finished", "cancelled", "expired", "error"]).optional(),
  usage: z.object({ prompt_tokens: z.number().int(), completion_tokens: z.number().int() }).optional(),
  error: z
    .object({ code: z.string().transform((code) => (isErrorCode(code) ? code : "internal")), message: z.string() })
    .optional(),
});

export type TokenRecord = z.infer<typeof tokenRecord>;
