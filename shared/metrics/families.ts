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

/** In the worker, of Triton's names. */
const inference = {
  nv_inference_request_success: counter("Requests whose results were committed.", ofModel),
  nv_inference_request_failure: counter("Requests that were committed with an error.", [...ofModel, "reason"]),
  nv_inference_count: counter("Rows of requests whose results were committed.", ofModel),
  nv_inference_exec_count: counter("Runs of the model.", ofModel),
  nv_inference_request_duration_us: counter("Time from admission to commit, of results.", ofModel),
  nv_inference_queue_duration_us: counter("Time from admission to the run, of results.", ofModel),
  nv_inference_compute_input_duration_us: counter("Time to look up states and stack inputs, of results.", ofModel),
  nv_inference_compute_infer_duration_us: counter("Time in the model, of results.", ofModel),
  nv_inference_compute_output_duration_us: counter("Time to take outputs apart, of results.", ofModel),
  nv_model_load_duration_secs: gauge("Time that the model took to load.", ofModel),
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
  baton_model_busy_seconds_total: counter("Time in which a run was under way.", ofModel),
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

/** In the gateway and the jobs process: requests on their way to the queue and back. */
const frontDoor = {
  baton_http_requests_total: counter("Answers over HTTP, refusals included.", ["route", "method", "status"]),
  baton_http_request_duration_seconds: histogram(
    requests,
    "Time from the head of a request to the end of its answer.",
    ["protocol"],
  ),
  baton_http_requests_open: gauge("Requests without a whole answer yet."),
  baton_refusals_total: counter("Error answers over HTTP, by the code of the error.", ["code"]),
  baton_auth_failures_total: counter("Refused credentials.", ["reason"]),
  baton_admissions_total: counter("Requests for the queue, by the answer of the admission.", [...ofModel, "said"]),
  baton_admission_duration_seconds: histogram(fast, "Time of a call that admits requests, repetitions included."),
  baton_admission_call_requests: histogram(counts, "Requests in a call that admits requests."),
  baton_outcomes_total: counter("Outcomes that a gateway waited for, by the way on which they came.", ["by"]),
  baton_reply_gaps_total: counter("Gaps in the numbered messages of workers."),
};

/** In every process: the brokers, and the process itself. */
const brokers = {
  baton_redis_calls_total: counter("Calls of Redis's scripts.", ["call"]),
  baton_redis_call_seconds_total: counter("Time of calls of Redis's scripts.", ["call"]),
  baton_redis_up: gauge("1 while the connection to Redis takes commands."),
  baton_redis_reconnects_total: counter("Connections to Redis that replaced a lost one."),
  baton_nats_up: gauge("1 while the connection to NATS takes messages."),
  baton_nats_reconnects_total: counter("Connections to NATS that replaced a lost one."),
  baton_event_loop_delay_seconds: gauge("Delay of the event loop in the last 10 s.", ["quantile"]),
  baton_build_info: gauge("Always 1; the labels say what runs.", ["version", "node", "role", "durability"]),
};

export const families = {
  ...inference,
  ...batches,
  ...frontDoor,
  ...brokers,
  ...observed,
  ...noticed,
} as const satisfies Readonly<Record<string, Family>>;

export type FamilyName = keyof typeof families;
