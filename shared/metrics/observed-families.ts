/**
 * The families of the whole fleet. One gateway at a time has them, so the sum and the maximum over
 * all gateways are both right.
 */

const ofModel = ["model", "version"] as const;

function gauge<const Labels extends readonly string[]>(help: string, labels: Labels) {
  return { type: "gauge", help, labels } as const;
}

export const observed = {
  nv_inference_pending_request_count: gauge("Requests that wait, also behind their sequences.", ofModel),
  baton_queue_requests: gauge("Requests in the queue, by their state.", [...ofModel, "state"]),
  baton_queue_oldest_seconds: gauge("Age of the oldest request that waits; 0 without any.", ofModel),
  baton_queue_bytes: gauge("Bytes of the requests in the queue.", ["model"]),
  baton_queue_limit_ratio: gauge("Part of a limit of the queue that is in use.", ["model", "limit"]),
  baton_sequences: gauge("Sequences, by their state.", ["model", "state"]),
  baton_delayed_jobs: gauge("Jobs that wait for their time.", []),
  baton_results_bytes: gauge("Bytes of results that clients may fetch later.", []),
  baton_unserved_buckets: gauge("Buckets in which Redis takes no requests.", []),
  baton_fleet_processes: gauge("Processes that are alive.", ["role"]),
  baton_model_workers: gauge("Workers that serve a version; 0 for ten minutes after the last.", ofModel),
} as const;

/** In every gateway, beside the families of the observer. */
export const noticed = {
  baton_gone_back_total: {
    type: "counter",
    help: "Times that this gateway found that Redis had lost what it had acknowledged.",
    labels: [],
  },
} as const;
