/**
 * Every family of metrics that a process of Baton counts: its name, type, help and labels. Names
 * that begin with `nv_` are Triton's, so that Triton's dashboards and clients work. The page of a
 * process and the documentation are made from this table.
 */

import { noticed, observed } from "./observed-families.js";

export interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  /** A sentence about the value, without line breaks. */
  readonly help: string;
  /** The names of the labels, in the order of the page. */
  readonly labels: readonly string[];
  /** The upper bounds of a histogram's buckets, ascending; absent for other types. */
  readonly bounds?: readonly number[];
}

/** Bounds of whole requests, in seconds. */
const requests = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Bounds of fast parts of a request, in seconds. */
const fast = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
/** Bounds of numbers of things. */
const counts = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** The labels of a figure about a version of a model. */
const ofModel = ["model", "version"] as const;

function counter(help: string, labels: readonly string[] = []): Family {
  return { type: "counter", help, labels };
}

function gauge(help: string, labels: readonly string[] = []): Family {
  return { type: "gauge", help, labels };
}

function histogram(bounds: readonly number[], help: string, labels: readonly string[] = []): Family {
  return { type: "histogram", help, labels, bounds };
}

/** In the worker, of Triton's names. A gateway counts the successes that its cache answers. */
const inference = {
  nv_inference_request_success: counter("Requests whose results were committed.", ofModel),
  nv_inference_request_failure: counter("Requests that ended with an error, in the process that ended them.", [
    ...ofModel,
    "reason",
  ]),
  nv_inference_count: counter("Rows of requests whose results were committed.", ofModel),
  nv_inference_exec_count: counter("Runs of the model.", ofModel),
  nv_inference_request_duration_us: counter("Time from admission to commit, of results.", ofModel),
  nv_inference_queue_duration_us: counter("Time from admission to the run, of results.", ofModel),
  nv_inference_compute_input_duration_us: counter("Time to look up states and stack inputs, of results.", ofModel),
  nv_inference_compute_infer_duration_us: counter("Time in the model, of results.", ofModel),
  nv_inference_compute_output_duration_us: counter("Time to take outputs apart, of results.", ofModel),
  nv_inference_first_response_histogram_ms: histogram(
    [100, 500, 2_000, 5_000],
    "Time from admission to the first token in the log, in ms; of a tensor model with model_metrics, to the commit.",
    ofModel,
  ),
  nv_model_load_duration_secs: gauge("Time that the model took to load.", ofModel),
};

/** In the gateway, of Triton's names: models with `response_cache`. */
const caches = {
  nv_cache_num_hits_per_model: counter("Requests that the response cache has answered.", ofModel),
  nv_cache_num_misses_per_model: counter("Requests for which the response cache had no answer.", ofModel),
  nv_cache_hit_duration_per_model: counter("Time to look up the answers that the response cache has, in µs.", ofModel),
  nv_cache_miss_duration_per_model: counter(
    "Time to look up answers that the response cache does not have, and to keep them afterwards, in µs.",
    ofModel,
  ),
};

/** In the worker: its host and its cards, of Triton's names. */
const hosts = {
  nv_cpu_utilization: gauge("Use of all CPUs of the host, 0 to 1."),
  nv_cpu_memory_total_bytes: gauge("Memory of the host."),
  nv_cpu_memory_used_bytes: gauge("Memory of the host that is in use."),
  nv_gpu_utilization: gauge("Use of a card, 0 to 1.", ["gpu_uuid"]),
  nv_gpu_memory_total_bytes: gauge("Memory of a card.", ["gpu_uuid"]),
  nv_gpu_memory_used_bytes: gauge("Memory of a card that is in use.", ["gpu_uuid"]),
  nv_gpu_power_usage: gauge("Power that a card draws, in W.", ["gpu_uuid"]),
  nv_gpu_power_limit: gauge("Most power that a card may draw, in W.", ["gpu_uuid"]),
  nv_energy_consumption: counter("Energy of a card since the worker's start, in J.", ["gpu_uuid"]),
};

/** In the worker: batches and steps. */
const batches = {
  baton_batch_rows: histogram(counts, "Rows of a run of the model.", ofModel),
  baton_batches_total: counter("Batches that ran, by the reason why they took no further request.", [
    ...ofModel,
    "closed_by",
  ]),
  baton_queue_seconds: histogram(requests, "Time from admission to the run, of results.", ofModel),
  baton_step_seconds: histogram(requests, "Time from admission to commit, of results.", ofModel),
  baton_model_busy_seconds_total: counter(
    "Time in which a run was under way, a part of it for each instance.",
    ofModel,
  ),
  baton_window_error_seconds: histogram(fast, "Actual less configured wait of batches that the delay closed.", ofModel),
  baton_commits_total: counter("Requests that went through a commit, by their fate.", [...ofModel, "fate"]),
  baton_commit_duration_seconds: histogram(fast, "Time of a commit of one or more requests, retries included."),
  baton_checkpoints_total: counter("Checkpoints written.", ofModel),
  baton_checkpoint_bytes_total: counter("Bytes of checkpoints written.", ofModel),
  baton_state_lookups_total: counter("Look-ups of states, by the place of the state.", [...ofModel, "from"]),
  baton_state_cache_bytes: gauge("Bytes of recent states in memory.", ofModel),
  baton_retries_alone_total: counter("Runs of requests alone whose earlier run may have ended a worker.", ofModel),
  baton_set_aside_total: counter("Requests set aside.", ofModel),
  baton_held_requests: gauge("Requests that this worker holds.", [...ofModel, "stage"]),
};

/** In the worker: generators. vLLM's names are in brackets, and mean the same. */
const generators = {
  baton_time_to_first_token_seconds: histogram(
    requests,
    "Time from admission to the first token in the log [time_to_first_token_seconds].",
    ofModel,
  ),
  baton_inter_token_seconds: histogram(
    fast,
    "Time between the records of a stream in the log [inter_token_latency_seconds].",
    ofModel,
  ),
  baton_generation_seconds: histogram(
    requests,
    "Time from admission to commit, of results [e2e_request_latency_seconds].",
    ofModel,
  ),
  baton_generation_queue_seconds: histogram(
    requests,
    "Time from admission until the engine has a request [request_queue_time_seconds].",
    ofModel,
  ),
  baton_prefill_seconds: histogram(
    requests,
    "Time from the engine's begin to its first token [request_prefill_time_seconds].",
    ofModel,
  ),
  baton_decode_seconds: histogram(
    requests,
    "Time from the first to the last token at the worker that committed the result [request_decode_time_seconds].",
    ofModel,
  ),
  baton_streams_running: gauge("Streams in the engine [num_requests_running].", ofModel),
  baton_streams_waiting: gauge(
    "Streams that the worker holds and the engine does not have [num_requests_waiting].",
    ofModel,
  ),
  baton_kv_cache_used_ratio: gauge("Used part of BATON_KV_CACHE_BYTES, 0 to 1 [kv_cache_usage_perc].", ofModel),
  baton_prefix_cache_tokens_total: counter(
    "Tokens of prompts, by whether a cache had them [prefix_cache_queries, prefix_cache_hits].",
    [...ofModel, "result"],
  ),
  baton_prompt_tokens_total: counter(
    "Tokens of prompts whose first token is in the log [prompt_tokens_total].",
    ofModel,
  ),
  baton_generated_tokens_total: counter("Generated tokens in the log [generation_tokens_total].", ofModel),
  baton_generations_total: counter("Generations that a worker ended, by the reason [request_success_total].", [
    ...ofModel,
    "reason",
  ]),
  baton_iteration_tokens: histogram(counts, "Tokens that an iteration of the engine takes in.", ofModel),
  baton_log_bytes_total: counter("Bytes of records in the logs of streams.", ofModel),
};

/** In the gateway and the jobs process: requests on their way to the queue and back. */
const frontDoor = {
  baton_http_requests_total: counter("Answers over HTTP, refusals included.", ["route", "method", "status"]),
  baton_http_request_duration_seconds: histogram(
    requests,
    "Time from the head of a request to the end of its answer.",
    ["protocol"],
  ),
  baton_http_request_bytes_total: counter("Bytes of the bodies of requests, as on the wire.", ["protocol"]),
  baton_http_response_bytes_total: counter("Bytes of the bodies of answers, as on the wire.", ["protocol"]),
  baton_http_connections: gauge("Open connections of clients."),
  baton_grpc_connections: gauge("Open connections of gRPC's clients."),
  baton_http_requests_open: gauge("Requests without a whole answer yet."),
  baton_http_body_memory_bytes: gauge("Bytes of bodies in memory, of BATON_BODY_MEMORY_BYTES."),
  baton_http_unread_bytes: gauge("Bytes that clients have not read yet, of BATON_MAX_UNREAD_BYTES."),
  baton_refusals_total: counter("Error answers over HTTP, by the code of the error and the model.", ["code", "model"]),
  baton_auth_failures_total: counter("Refused credentials.", ["reason"]),
  baton_keys_file_ok: gauge("1 while the keys file that lies there is in force."),
  baton_admissions_total: counter("Requests for the queue, by the answer of the admission.", [...ofModel, "said"]),
  baton_admission_duration_seconds: histogram(fast, "Time of a call that admits requests, repetitions included."),
  baton_admission_call_requests: histogram(counts, "Requests in a call that admits requests."),
  baton_requests_waiting: gauge("Requests whose outcomes a gateway waits for.", ofModel),
  baton_outcomes_total: counter("Outcomes that a gateway waited for, by the way on which they came.", ["by"]),
  baton_reply_gaps_total: counter("Gaps in the numbered messages of workers."),
};

/** In the process that ends a request: a worker, a gateway or a jobs process. */
const ends = {
  baton_expired_total: counter("Requests whose deadline passed: in the queue, at a worker, or with tokens.", [
    ...ofModel,
    "where",
  ]),
  baton_cancelled_total: counter("Requests that were given up, by the reason.", [...ofModel, "why"]),
};

/** In the gateway and the jobs process: the readers of streams. */
const streams = {
  baton_stream_readers: gauge("Readers of streams now, by the way on which they read.", ["kind"]),
  baton_stream_gaps_total: counter("Gaps in the messages of a stream, filled from its log."),
  baton_stream_resumes_total: counter("Readers of events and of WebSockets that began behind the first record."),
};

/** In the worker: its part in the fleet. */
const liveness = {
  baton_takeovers_total: counter(
    "Requests of a gone worker, by steps that were committed here and streams that began here.",
    [...ofModel, "of"],
  ),
  baton_recovery_seconds: histogram(
    requests,
    "Time from the last beat of a gone worker to the begin of its request here.",
    ofModel,
  ),
  baton_workers_buried_total: counter("Workers that this worker declared dead, or its own leave.", ["why"]),
  baton_beat_delay_seconds: histogram(fast, "How late a heartbeat was."),
  baton_supervisor_restarts_total: counter("Deaths of this worker's predecessors, by the signal or the exit code.", [
    "signal",
  ]),
};

/** In the jobs process. */
const jobs = {
  baton_job_late_seconds: histogram(requests, "Time from a job's due time to its place in the queue."),
  baton_schedule_ticks_total: counter("Times of schedules: with a job, without one, or with a refused one.", [
    "result",
  ]),
  baton_webhook_deliveries_total: counter("Messages to receivers that have ended.", ["state"]),
  baton_webhook_attempts_total: counter("Attempts at receivers, by the answer.", ["result"]),
  baton_webhook_attempt_duration_seconds: histogram(requests, "Time of an attempt at a receiver."),
  baton_batch_lines_total: counter("Lines of batch files whose results are stored.", ["result"]),
};

/** In every process: the brokers, and the process itself. */
const brokers = {
  baton_redis_calls_total: counter("Calls of Redis's scripts.", ["call"]),
  baton_redis_call_seconds_total: counter("Time of calls of Redis's scripts.", ["call"]),
  baton_redis_up: gauge("1 while the connection to Redis takes commands."),
  baton_redis_reconnects_total: counter("Connections to Redis that replaced a lost one."),
  baton_nats_up: gauge("1 while the connection to NATS takes messages."),
  baton_nats_reconnects_total: counter("Connections to NATS that replaced a lost one."),
  baton_nats_published_total: counter("Messages over NATS: replies to gateways, and records of streams.", ["kind"]),
  baton_nats_publish_bytes_total: counter("Bytes of these messages.", ["kind"]),
  baton_thread_restarts_total: counter("Threads that were started anew.", ["thread"]),
  baton_spans_dropped_total: counter("Spans that were dropped, because the receiver of traces did not take them."),
  baton_log_dropped_total: counter("Lines of the access log that were dropped, because their place did not take them."),
  baton_event_loop_delay_seconds: gauge("Delay of the event loop in the last 10 s.", ["quantile"]),
  baton_build_info: gauge("Always 1; the labels say what runs.", ["version", "node", "role", "durability"]),
};

/** All families, by the part of the documentation that has them. */
export const sections: Readonly<Record<string, Readonly<Record<string, Family>>>> = {
  "Inference, by Triton's names": inference,
  "Response caches, by Triton's names": caches,
  "Hosts and cards, by Triton's names": hosts,
  "Batches and steps": batches,
  Generators: generators,
  "The front door": frontDoor,
  "Requests given up": ends,
  "Readers of streams": streams,
  "Workers in the fleet": liveness,
  "Jobs, schedules and webhooks": jobs,
  "Brokers and the process": brokers,
  "The queue of the fleet, from the observing gateway": observed,
  "Losses of Redis": noticed,
};

export const families = {
  ...inference,
  ...caches,
  ...hosts,
  ...batches,
  ...generators,
  ...frontDoor,
  ...ends,
  ...streams,
  ...liveness,
  ...jobs,
  ...brokers,
  ...observed,
  ...noticed,
} as const satisfies Readonly<Record<string, Family>>;

export type FamilyName = keyof typeof families;
