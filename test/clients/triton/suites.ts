/**
 * The runs of Triton's clients and tests, and the cases that fail, each with its reason.
 */

export interface Suite {
  readonly name: string;
  /** A script for `suite.sh`. */
  readonly runs: string;
  /** How many programs and cases run. */
  readonly ran: number;
  /** By the name of the case: the reason. */
  readonly fails: Readonly<Record<string, string>>;
  /** Cases that fail by chance, and what they must say then. */
  readonly chance?: { readonly fails: Readonly<Record<string, string>>; readonly says: RegExp };
}

const files = "a load takes no files: models come from the repository, which all workers share";
const strings = "strings of ONNX Runtime for Node are UTF-8 without NUL bytes";
const memory = "memory is not shared: the workers may be on other machines";
const hook =
  "checks which requests share a batch, for which it lets the server wait until many have come " +
  "(TRITONSERVER_DELAY_SCHEDULER); the answers are right";
const slots = "checks batches of sequences that keep their slot until they end: here a step waits for itself alone";
const timeouts = "here a request's timeout counts until it runs, also if its sequence has begun";
const delays = "`repeat` has a backend of its own: the graph in its place neither waits nor compares IN with DELAY";
const parameters = "the model reads parameters of the request, and no graph can";
const another = "the graph in the place of `mock_llm` has an input of its own in the place of `input_ids`";
const texts = "refused as well, in other words";
const statuses = "refused as well, with the status 400 in the place of 500";
const chunked = "a request with a length and with chunks is refused, as RFC 9112 (6.1) advises";
const queue = "a request that a worker holds for its delay does not count as queued";

const each = (reason: string, ...cases: readonly string[]): Record<string, string> =>
  Object.fromEntries(cases.map((one) => [one, reason]));

const examples = `
cp -r /opt/server/docs/examples/model_repository /opt/repository
cd /opt/repository && rm -r inception_onnx densenet_onnx
cp -r "$sources/server/src/test/models/repeat_int32" .
mkdir custom_identity_int32
sed 's/simple_identity/custom_identity_int32/; s/TYPE_STRING/TYPE_INT32/; s/"python"/"identity"/' \\
  simple_identity/config.pbtxt > custom_identity_int32/config.pbtxt
serve --model-repository=/opt/repository --model-control-mode=explicit '--load-model=*'
load() { curl -s -XPOST localhost:8000/v2/repository/models/simple/load -d '{}'; }
programs() {
  for name in $(cd "$examples" && ls | grep -E "$1" | grep -v shm); do load; program "$name" python3 "$examples/$name"; done
  for name in $(ls "$cpp" | grep -E "$1"); do load; program "$name" "$cpp/$name"; done
}
programs '^(simple_grpc|grpc_explicit)'
stop
# The programs of HTTP expect one model less.
rm -r repeat_int32
serve --model-repository=/opt/repository --model-control-mode=explicit '--load-model=*'
programs '^simple_http'
stop`;

const perfAnalyzer = `
cp -r /opt/server/docs/examples/model_repository /opt/repository
cd /opt/repository && rm -r inception_onnx densenet_onnx
cp -r "$sources/server/src/test/models/repeat_int32" .
serve --model-repository=/opt/repository
echo '{"data":[{"IN":{"content":[1,2,3,4],"shape":[4]},"DELAY":{"content":[0,0,0,0],"shape":[4]},"WAIT":[0]}]}' > /opt/repeat.json
# The statistics have the work of workers within two seconds, so a run takes some.
analyze() { local count=$1; shift; program "perf_analyzer $*" "$cpp/perf_analyzer" --request-count $count "$@"; }
analyze 2000 -m simple -i grpc -u localhost:8001 --concurrency-range 4
analyze 2000 -m simple -i grpc -u localhost:8001 --streaming --concurrency-range 4
analyze 2000 -m simple -i grpc -u localhost:8001 --async -b 4 --concurrency-range 4
analyze 2000 -m simple -i http -u localhost:8000 --concurrency-range 4
analyze 400 -m simple -i http -u localhost:8000 --async --request-rate-range 100
analyze 2000 -m simple_sequence -i grpc -u localhost:8001 --streaming --sequence-length 10 --concurrency-range 4
analyze 2000 -m simple_sequence -i http -u localhost:8000 --sequence-length 10 --concurrency-range 4
analyze 400 -m simple_dyna_sequence -i grpc -u localhost:8001 --num-of-sequences 4 --concurrency-range 4
analyze 400 -m repeat_int32 -i grpc -u localhost:8001 --streaming --input-data /opt/repeat.json --concurrency-range 2
stop`;

const repositoryOfExamples = `
cp -r /opt/server/docs/examples/model_repository /opt/repository
cd /opt/repository && rm -r inception_onnx densenet_onnx
sed 's/simple_dyna_sequence/simple_string_dyna_sequence/; s/TYPE_UINT64/TYPE_STRING/' simple_dyna_sequence/config.pbtxt > /opt/config.pbtxt
mkdir simple_string_dyna_sequence
sed 's/simple_identity/simple_string_dyna_sequence/; s/"python"/"identity"/' simple_identity/config.pbtxt > simple_string_dyna_sequence/config.pbtxt`;

const aio = `${repositoryOfExamples}
serve --model-repository=/opt/repository
tests L0_http python_http_aio_test.py
stop
cp -r "$sources/server/src/test/models/repeat_int32" /opt/repository
serve --model-repository=/opt/repository
tests L0_grpc python_grpc_aio_test.py
stop`;

const restricted = `${repositoryOfExamples}
serve --model-repository=/opt/repository '--grpc-restricted-protocol=inference,health:infer-key=infer-value' \\
  '--grpc-restricted-protocol=model-repository:admin-key=admin-value'
tests L0_grpc python_unit_test.py RestrictedProtocolTest
stop`;

const http = `${repositoryOfExamples}
mkdir /opt/identities && cd /opt/identities
models=/data/inferenceserver/baton/qa_identity_model_repository
cp -r $models/onnx_zero_{1_float32,1_object,1_float16,3_float32} .
cp -r onnx_zero_1_object onnx_zero_1_object_1_element
sed -i 's/onnx_zero_1_object/onnx_zero_1_object_1_element/; 0,/-1/{s/-1/1/}' onnx_zero_1_object_1_element/config.pbtxt
cp -r onnx_zero_1_float32 onnx_zero_1_float32_queue
sed -i 's/onnx_zero_1_float32/onnx_zero_1_float32_queue/' onnx_zero_1_float32_queue/config.pbtxt
echo 'dynamic_batching { max_queue_delay_microseconds: 1000000 preferred_batch_size: [ 8 ] default_queue_policy { max_queue_size: 1 } }' \\
  >> onnx_zero_1_float32_queue/config.pbtxt
cp -r /opt/repository/simple_identity simple_identity
cp -r /opt/repository/simple_identity simple_identity_int64
sed -i 's/TYPE_STRING/TYPE_INT64/; s/simple_identity/simple_identity_int64/' simple_identity_int64/config.pbtxt
serve --model-repository=/opt/identities --model-control-mode=explicit '--load-model=*'
tests L0_http http_test.py
stop`;

const generate = `
mkdir -p /opt/repository/mock_llm && cp $qa/python_models/generate_models/mock_llm/config.pbtxt /opt/repository/mock_llm
serve --model-repository=/opt/repository
tests L0_http generate_endpoint_test.py
stop`;

const decoupled = `
cp -r $qa/L0_decoupled/models /opt/repository
cp -r "$sources"/server/src/test/models/{repeat,square}_int32 /opt/repository
mkdir /opt/repository/libtorch_nobatch_int32_int32_int32
sed '/^version_policy/d; s/onnx_nobatch/libtorch_nobatch/; s/OUTPUT\\([01]\\)/OUTPUT__\\1/; s/dims:.*\\[.*\\]/dims: [ 1 ]/; /label_filename/d' \\
  /data/inferenceserver/baton/qa_model_repository/onnx_nobatch_int32_int32_int32/config.pbtxt \\
  > /opt/repository/libtorch_nobatch_int32_int32_int32/config.pbtxt
serve --model-repository=/opt/repository
for case in one_to_none one_to_one one_to_many no_streaming response_order wrong_shape; do
  tests L0_decoupled decoupled_test.py DecoupledTest.test_$case
done
export TRITONSERVER_DELAY_GRPC_RESPONSE=2000
tests L0_decoupled decoupled_test.py DecoupledTest.test_one_to_multi_many
stop
rm -r /opt/repository && mkdir /opt/repository && cp -r "$sources/server/src/test/models/repeat_int32" /opt/repository
sed -i 's/decoupled: True/decoupled: False/' /opt/repository/repeat_int32/config.pbtxt
serve --model-repository=/opt/repository
tests L0_decoupled decoupled_test.py NonDecoupledTest
stop`;

/** The cases of the sequence batcher that check batches, in the repositories in which they fail. */
const composed = (repositories: readonly string[], ...cases: readonly string[]): Record<string, string> =>
  each(hook, ...repositories.flatMap((repository) => cases.map((one) => `test_${one}, ${repository}`)));
const together = ["backlog", "full_batch", "half_batch", "skip_batch", "backlog_same_correlation_id"];
const filled = ["backlog_fill", "backlog_fill_no_end", "backlog_same_correlation_id_no_end"];
const utilization = ["no", "half", "full"].map((one) => `queue_delay_${one}_min_util`);
const ofBatcher = {
  ...composed(["models1", "modelsv"], ...together, ...filled),
  ...composed(["modelsv"], "ragged_batch"),
  ...composed(["queue_delay_models"], ...utilization),
};
const expired = each(timeouts, "SequenceBatcherRequestTimeoutTest, request_timeout_models");
const says = /batch-size|model-exec|Request timeout expired|^False is not true$/;

export const suites: readonly Suite[] = [
  {
    name: "the example programs in Python and C++",
    runs: examples,
    ran: 38,
    fails: {
      ...each(files, "simple_grpc_model_control.py"),
      ...each(strings, "simple_grpc_string_infer_client.py", "simple_http_string_infer_client.py"),
    },
  },
  { name: "perf_analyzer", runs: perfAnalyzer, ran: 9, fails: {} },
  {
    name: "the asyncio clients for HTTP and gRPC",
    runs: aio,
    ran: 36,
    fails: each(
      memory,
      ...["register", "unregister"].flatMap((verb) => [
        `test_${verb}_cuda_shared_memory`,
        `test_${verb}_system_shared_memory`,
      ]),
    ),
  },
  { name: "restricted protocols of gRPC", runs: restricted, ran: 5, fails: {} },
  {
    name: "HTTP",
    runs: http,
    ran: 17,
    fails: {
      ...each(chunked, "test_content_encoding_chunked_manually"),
      ...each(queue, "test_descriptive_status_code"),
      ...each(files, "test_load_oversized_file_parameter"),
      ...each(statuses, "test_negative_dimensions"),
      ...each(
        texts,
        "test_buffer_size_overflow",
        "test_loading_large_invalid_model",
        "test_repository_index_deeply_nested_json",
      ),
    },
  },
  {
    name: "generate",
    runs: generate,
    ran: 18,
    fails: {
      ...each(parameters, "test_0_dimension_output", "test_generate_stream_response_error", "test_streaming"),
      ...each(another, "test_generate_with_all_inputs"),
      ...each(
        texts,
        "test_complex_schema",
        "test_duplicate_inputs",
        "test_json_dtype_size_expansion_exceeds_limit_error",
        "test_parameters",
      ),
    },
  },
  {
    name: "decoupled models, and those that are not",
    runs: decoupled,
    ran: 11,
    fails: each(delays, "test_grpc_async_cancel", "test_response_order", "test_wrong_shape"),
  },
  {
    name: "the sequence batcher",
    runs: "script L0_sequence_batcher",
    ran: 90,
    fails: expired,
    chance: { fails: { ...ofBatcher, ...composed(["models2"], ...together, ...filled) }, says },
  },
  ...["ZERO", "FILE"].map((initial) => ({
    name: `implicit state, from ${initial.toLowerCase()}`,
    runs: `IMPLICIT_STATE=1 ENSEMBLES=0 INITIAL_STATE_${initial}=1 MODEL_TRIALS="0 1 v" script L0_sequence_batcher`,
    ran: 56,
    fails: expired,
    chance: { fails: ofBatcher, says },
  })),
  {
    name: "the oldest strategy of the sequence batcher",
    runs: "script L0_dyna_sequence_batcher",
    ran: 9,
    fails: {},
    chance: { fails: each(slots, "test_backlog", "test_backlog_fill", "test_backlog_fill_no_end"), says },
  },
  { name: "infer", runs: "script L0_infer", ran: 44, fails: {} },
  { name: "infer-zero", runs: "script L0_infer_zero", ran: 28, fails: {} },
  { name: "string I/O", runs: "script L0_string_io", ran: 1, fails: each(strings, "test_unicode_bytes") },
];
