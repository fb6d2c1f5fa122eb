/** An answer in chunks. Each event has the index of the record that it ends: a client that lost the connection goes on after it at `/v2/requests/<id>/events`. */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { cancelAll } from "../generation/gone.js";
import type { Usage } from "../generation/fold.js";
import { tokenRecords } from "../generation/records.js";
import { openSse, type SseStream } from "../stream/sse.js";
import { errorBody } from "./errors.js";
import { headOf, publicIds, totalUsage, type AdmittedJob } from "./job.js";
import { mergeRecords, type PromptRecord } from "./merge.js";

/** The head waits for the first record, which may be a failure with a status of its own. @throws InferenceError before anything was answered */
export async function streamAnswer(job: AdmittedJob, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  const { streams } = job;
  const records = mergeRecords(streams.map((stream) => tokenRecords(stream, gone)));
  const first = await records.next();
  if (first.done === true) return;
  // Not ended for the client to go on elsewhere: OpenAI's clients would take that for the answer's end.
  const sse = openSse(outgoing, { requestId: publicIds(job) });
  try {
    await sendRecords(job, sse, first.value, records);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    if (streams.length > 1) cancelAll(streams, job.requests);
    await sse.send({ data: errorBody(error) });
  } finally {
    await records.return();
  }
  await sse.send({ data: "[DONE]" });
  sse.end();
}

/** Until the last record, or the client has gone. */
async function sendRecords(
  job: AdmittedJob,
  sse: SseStream,
  first: PromptRecord,
  rest: AsyncGenerator<PromptRecord, void>,
): Promise<void> {
  const { wording, streams, delivery } = job;
  const used: Usage[] = [];
  let open = streams.length;
  const chunk = chunkPrinter(headOf(job, wording.chunk), delivery.includeUsage);
  for (let next: PromptRecord | undefined = first; next !== undefined; next = (await rest.next()).value ?? undefined) {
    const { record, prompt } = next;
    const chunks = wording.chunkChoices(record, prompt).map((choice) => chunk([choice]));
    if (record.usage !== undefined) used.push(record.usage);
    if (record.final === true) open--;
    if (open === 0 && delivery.includeUsage) chunks.push(chunk([], totalUsage(used)));
    for (const [index, data] of chunks.entries()) {
      // Indexes of several prompts' records say nothing about where to go on.
      const id = streams.length === 1 && index === chunks.length - 1 ? record.index : undefined;
      if (!(await sse.send({ id, data }))) return;
    }
  }
}

/** All but choices and usage is the same text in every chunk. */
function chunkPrinter(head: object, includeUsage: boolean): (choices: object[], usage?: object) => string {
  const begin = `${JSON.stringify(head).slice(0, -1)},"choices":`;
  return (choices, usage) => {
    const end = includeUsage ? `,"usage":${JSON.stringify(usage ?? null)}}` : "}";
    return begin + JSON.stringify(choices) + end;
  };
}
