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
  baton_queue_level_requests: gauge("Parked requests, by their priority level.", ["model", "level"]),
  baton_queue_oldest_seconds: gauge("Age of the oldest request that waits; 0 without any.", ofModel),
  baton_queue_bytes: gauge("Bytes of the requests in the queue.", ["model"]),
  baton_queue_limit_ratio: gauge("Part of a limit of the queue that is in use.", ["model", "limit"]),
  baton_sequences: gauge("Sequences, by their state; together all that live.", ["model", "state"]),
  baton_delayed_jobs: gauge("Jobs that wait for their time, or for another attempt.", []),
  baton_jobs: gauge("Jobs that have not ended, by their state.", ["state"]),
  baton_jobs_ended_total: {
    type: "counter",
    help: "All jobs of the fleet that have ended, by their state. A job that runs again may end again.",
    labels: ["model", "state"],
  },
  baton_outbox_events: gauge("Events that no jobs process has handled.", []),
  baton_webhook_pending: gauge("Messages to receivers that have not ended.", []),
  baton_webhook_oldest_seconds: gauge("Age of the oldest of these messages; 0 without any.", []),
  baton_batches: gauge("Batch files with work to do, by their status.", ["state"]),
  baton_results_bytes: gauge("Bytes of results that clients may fetch later.", []),
  baton_dead_requests: gauge("Requests that were set aside, and are still kept.", []),
  baton_tenant_requests: gauge("Requests of a tenant that wait or run.", ["tenant"]),
  baton_tenant_bytes: gauge("Bytes of these requests.", ["tenant"]),
  baton_budget_used_ratio: gauge("Part of a tenant's limit that is in use.", ["tenant", "budget"]),
  baton_redis_memory_bytes: gauge("Memory that a server of Redis uses.", ["node"]),
  baton_redis_memory_limit_bytes: gauge("Most memory that a server may use; absent if it has no limit.", ["node"]),
  baton_redis_replicas: gauge("Connected replicas of a server.", ["node"]),
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
