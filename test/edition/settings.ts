/** Settings that several of these tests give a fleet. */

/** The number of buckets that share all requests of a deployment. */
export function buckets(count: number): Record<string, string> {
  return { BATON_BUCKETS: String(count) };
}

/** Longer than any test lasts. */
const FOREVER_US = 600_000_000;
/**
 * A configuration of `accumulate` under which all requests wait in the worker, so that its
 * sequences are always at work.
 */
export const patient = `
  name: "accumulate"
  backend: "onnxruntime"
  max_batch_size: 4096
  input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
  output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
  sequence_batching {
    max_sequence_idle_microseconds: ${FOREVER_US}
    oldest { max_candidate_sequences: 4096 max_queue_delay_microseconds: ${FOREVER_US} }
    control_input [
      { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
      { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
      { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
      { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
    ]
    state [
      {
        input_name: "INPUT_STATE"
        output_name: "OUTPUT_STATE"
        data_type: TYPE_INT32
        dims: [ 1 ]
        initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true }
      }
    ]
  }`;
