/** `/v2/models/stats`: the statistics of models, with Triton's paths and members. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import type { StatisticsService } from "../fleet/statistics.js";
import { jsonReply } from "../formats/reply.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { forModel, modelOf } from "./endpoint/model-path.js";

const endpoint = endpointsOf<StatisticsService>("statistics");

const spentShape = () => z.strictObject({ count: z.int(), ns: z.int() });

const responseShape = () =>
  z.strictObject({
    compute_infer: spentShape(),
    compute_output: spentShape(),
    success: spentShape(),
    fail: spentShape(),
    empty_response: spentShape(),
    cancel: spentShape(),
  });

const statisticsShape = () =>
  z.strictObject({
    model_stats: z.array(
      z.strictObject({
        name: z.string(),
        version: z.string(),
        last_inference: z.int(),
        inference_count: z.int(),
        execution_count: z.int(),
        inference_stats: z.strictObject({
          success: spentShape(),
          fail: spentShape(),
          queue: spentShape(),
          compute_input: spentShape(),
          compute_infer: spentShape(),
          compute_output: spentShape(),
          cache_hit: spentShape(),
          cache_miss: spentShape(),
        }),
        response_stats: z.record(z.string(), responseShape()),
        batch_stats: z.array(
          z.strictObject({
            batch_size: z.int(),
            compute_input: spentShape(),
            compute_infer: spentShape(),
            compute_output: spentShape(),
          }),
        ),
        memory_usage: z.array(z.strictObject({ type: z.string(), id: z.int(), byte_size: z.int() })),
      }),
    ),
  });

/** The path of all models stands before `/v2/models/:model`, which matches the same request. */
export const statisticsEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/models/stats",
    does: "Sums up the requests and times of all models over the fleet and its past.",
    answers: { 200: { says: "The statistics of each version that is served.", shape: statisticsShape } },
    refusals: ["unavailable"],
    handle: async (asked, statistics) => jsonReply(await statistics.read(asked.models(statistics))),
  }),
  ...forModel(
    endpoint({
      method: "GET",
      path: "/v2/models/:model/stats",
      does: "Sums up the requests and times of a model over the fleet and its past.",
      answers: { 200: { says: "The statistics of each version that is served.", shape: statisticsShape } },
      refusals: ["unavailable"],
      handle: async (asked, statistics) => jsonReply(await statistics.read(asked.models(statistics), namedBy(asked))),
    }),
  ),
];

/** @throws InferenceError with Triton's words and status, which differ for statistics */
function namedBy(asked: Parameters<typeof modelOf>[0]): ReturnType<typeof modelOf> {
  try {
    return modelOf(asked);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    throw new InferenceError("invalid_argument", `requested model '${asked.segment("model")}' is not available`);
  }
}
