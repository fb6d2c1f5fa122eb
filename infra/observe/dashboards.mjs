/**
 * Writes the dashboards of Grafana, `dashboards/*.json`, from this list of their panels: each has a
 * title, a unit of Grafana and one expression, with the labels that name its lines. A dashboard
 * leads from a question to the figures that answer it. A test holds the files to this list.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @typedef {{ title: string, unit: string, query: string, legend: string, says?: string }} Panel
 */

/** @type {(title: string, unit: string, query: string, legend: string, says?: string) => Panel} */
const panel = (title, unit, query, legend, says) => ({ title, unit, query, legend, ...(says && { says }) });

const MODEL = "{{model}}";

/** @type {{ name: string, title: string, panels: Panel[] }[]} */
const dashboards = [
  {
    name: "up",
    title: "Is it up",
    panels: [
      panel("Processes", "short", "sum by (baton_role) (up)", "{{baton_role}}"),
      panel("Workers by model", "short", "sum by (model) (baton_model_workers)", MODEL),
      panel("Steps", "reqps", "baton:steps:rate1m", MODEL),
      panel("Answers", "reqps", "baton:answers:rate5m", "{{status}}"),
      panel("Redis answers", "short", "min by (instance) (baton_redis_up)", "{{instance}}"),
      panel("NATS answers", "short", "min by (instance) (baton_nats_up)", "{{instance}}"),
      panel("Takeovers", "reqps", "sum by (model, of) (rate(baton_takeovers_total[5m]))", "{{model}} {{of}}"),
      panel("Recovery, 99 %", "s", "baton:recovery_seconds:p99", "", "From a worker's last sign of life to the run."),
      panel("Restarts", "short", "sum by (signal) (increase(baton_supervisor_restarts_total[10m]))", "{{signal}}"),
      panel(
        "Redis's memory",
        "percentunit",
        "max by (node) (baton_redis_memory_bytes / baton_redis_memory_limit_bytes)",
        "{{node}}",
      ),
      panel("Data lost by Redis", "short", "sum(increase(baton_gone_back_total[1h]))", "times noticed"),
    ],
  },
  {
    name: "behind",
    title: "Is it behind",
    panels: [
      panel("Oldest request", "s", "max by (model) (baton_queue_oldest_seconds)", MODEL),
      panel("Queue", "short", "sum by (model, state) (baton_queue_requests)", "{{model}} {{state}}"),
      panel("Use of limits", "percentunit", "max by (model, limit) (baton_queue_limit_ratio)", "{{model}} {{limit}}"),
      panel("Use of workers", "percentunit", "baton:busy:ratio1m", MODEL, "Near 1, more workers help."),
      panel("Sequences", "short", "sum by (model, state) (baton_sequences)", "{{model}} {{state}}"),
      panel("Parked by level", "short", "sum by (model, level) (baton_queue_level_requests)", "{{model}} {{level}}"),
      panel("Jobs that wait", "short", "sum by (state) (baton_jobs)", "{{state}}"),
      panel("Batch files", "short", "sum by (state) (baton_batches)", "{{state}}"),
      panel("Jobs after their time, 99 %", "s", "baton:job_late_seconds:p99", ""),
      panel("Held by workers", "short", "sum by (model, stage) (baton_held_requests)", "{{model}} {{stage}}"),
    ],
  },
  {
    name: "slow",
    title: "Why is it slow",
    panels: [
      panel("Step, 50 %", "s", "baton:step_seconds:p50", MODEL),
      panel("Step, 99 %", "s", "baton:step_seconds:p99", MODEL),
      panel("Queue, 99 %", "s", "baton:queue_seconds:p99", MODEL),
      panel(
        "Model's time of a request",
        "s",
        "sum by (model) (rate(nv_inference_compute_infer_duration_us[5m])) / 1e6 / baton:steps:rate1m",
        MODEL,
      ),
      panel("Commit, 99 %", "s", "baton:commit_seconds:p99", ""),
      panel("Rows of a batch", "short", average("baton_batch_rows"), MODEL),
      panel(
        "Batches by their end",
        "reqps",
        "sum by (closed_by) (rate(baton_batches_total[5m]))",
        "{{closed_by}}",
        "Why a batch took no further request.",
      ),
      panel(
        "States by place",
        "reqps",
        "sum by (from) (rate(baton_state_lookups_total[5m]))",
        "{{from}}",
        "A state from memory costs no read of Redis.",
      ),
      panel(
        "Time of Redis's scripts",
        "percentunit",
        "topk(8, sum by (call) (rate(baton_redis_call_seconds_total[5m])))",
        "{{call}}",
      ),
      panel(
        "Event loops, 99 %",
        "s",
        'max by (instance) (baton_event_loop_delay_seconds{quantile="0.99"})',
        "{{instance}}",
      ),
    ],
  },
  {
    name: "failing",
    title: "Who is failing",
    panels: [
      panel("Errors by code", "reqps", "sum by (code) (rate(baton_refusals_total[5m]))", "{{code}}"),
      panel(
        "Answers by route and status",
        "reqps",
        'topk(10, sum by (route, status) (rate(baton_http_requests_total{status!~"2xx|3xx"}[5m])))',
        "{{route}} {{status}}",
      ),
      panel(
        "Failed requests",
        "reqps",
        "sum by (model, reason) (rate(nv_inference_request_failure[5m]))",
        "{{model}} {{reason}}",
      ),
      panel("Expired", "reqps", "sum by (model, where) (rate(baton_expired_total[5m]))", "{{model}} {{where}}"),
      panel("Cancelled", "reqps", "sum by (model, why) (rate(baton_cancelled_total[5m]))", "{{model}} {{why}}"),
      panel("Set aside", "short", "sum by (model) (increase(baton_set_aside_total[15m]))", MODEL),
      panel("Refused credentials", "reqps", "sum by (reason) (rate(baton_auth_failures_total[5m]))", "{{reason}}"),
      panel("Outcomes by way", "reqps", "sum by (by) (rate(baton_outcomes_total[5m]))", "{{by}}"),
      panel("Commits by fate", "reqps", "sum by (fate) (rate(baton_commits_total[5m]))", "{{fate}}"),
      panel("Set aside and kept", "short", "max(baton_dead_requests)", ""),
      panel("Oldest message to a receiver", "s", "max(baton_webhook_oldest_seconds)", ""),
      panel("Webhooks", "reqps", "sum by (result) (rate(baton_webhook_attempts_total[5m]))", "{{result}}"),
    ],
  },
  {
    name: "generators",
    title: "Generators",
    panels: [
      panel("Tokens", "short", "baton:tokens:rate1m", MODEL, "Per second."),
      panel("First token, 95 %", "s", "baton:first_token_seconds:p95", MODEL),
      panel(
        "Between tokens, 99 %",
        "s",
        "histogram_quantile(0.99, sum by (le, model) (rate(baton_inter_token_seconds_bucket[5m])))",
        MODEL,
      ),
      panel("Running streams", "short", "sum by (model) (baton_streams_running)", MODEL),
      panel("Waiting streams", "short", "sum by (model) (baton_streams_waiting)", MODEL),
      panel("Memory for keys and values", "percentunit", "max by (model) (baton_kv_cache_used_ratio)", MODEL),
      panel(
        "Prompt tokens from the prefix cache",
        "percentunit",
        'sum by (model) (rate(baton_prefix_cache_tokens_total{result="hit"}[5m])) / ' +
          "sum by (model) (rate(baton_prefix_cache_tokens_total[5m]))",
        MODEL,
      ),
      panel("Prefill", "s", average("baton_prefill_seconds"), MODEL),
      panel("Ends", "reqps", "sum by (reason) (rate(baton_generations_total[5m]))", "{{reason}}"),
      panel("Gaps filled", "reqps", "sum(rate(baton_stream_gaps_total[5m]))", ""),
    ],
  },
];

/** @param {string} name of a histogram */
function average(name) {
  return `sum by (model) (rate(${name}_sum[5m])) / sum by (model) (rate(${name}_count[5m]))`;
}

const [WIDTH, HEIGHT] = [12, 8];

/** @param {Panel} panel @param {number} i its place, two to a line */
function panelJson({ title, unit, query, legend, says }, i) {
  return {
    id: i + 1,
    type: "timeseries",
    title,
    ...(says !== undefined && { description: says }),
    datasource: { type: "prometheus", uid: "prometheus" },
    gridPos: { x: (i % 2) * WIDTH, y: Math.floor(i / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: [{ refId: "A", expr: query, legendFormat: legend || title }],
  };
}

/** @returns {Record<string, string>} the texts of the dashboards, by the names of their files */
export function dashboardFiles() {
  return Object.fromEntries(
    dashboards.map(({ name, title, panels }) => {
      const head = { uid: `baton-${name}`, title: `Baton: ${title}`, tags: ["baton"], timezone: "browser" };
      const rest = { refresh: "10s", time: { from: "now-30m", to: "now" }, schemaVersion: 39, version: 1 };
      // A line for each panel, so that a change of one shows as one.
      const lines = panels.map((one, i) => JSON.stringify(panelJson(one, i))).join(",\n");
      return [`${name}.json`, `${JSON.stringify({ ...head, ...rest }).slice(0, -1)},"panels":[\n${lines}\n]}\n`];
    }),
  );
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, text] of Object.entries(dashboardFiles())) {
    writeFileSync(join(import.meta.dirname, "dashboards", name), text);
  }
}
