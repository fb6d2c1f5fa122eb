/** An answer in chunks. Each event has the index of the record that it ends: a client that lost the connection goes on after it at `/v2/requests/<id>/events`. */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import { cancelAll, cancelUnlessBegun } from "../generation/gone.js";
import type { Usage } from "../generation/fold.js";
import { answerPages, readRecord, type AnswerPage } from "../generation/records.js";
import type { StreamRecord } from "../inference.js";
import { openSse, type SseStream } from "../stream/sse.js";
import { errorBody } from "./errors.js";
import { headOf, publicIds, totalUsage, type AdmittedJob } from "./job.js";
import { mergePages } from "./merge.js";

/** The head waits for the first record, which may be a failure with a status of its own. @throws InferenceError before anything was answered */
export async function streamAnswer(job: AdmittedJob, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  const { streams } = job;
  cancelUnlessBegun(streams, job.requests, outgoing, gone);
  const pages = mergePages(streams.map((stream, prompt) => answerPages(stream, gone, prompt)));
  const first = await pages.next();
  if (first.done === true) return;
  const [opening] = first.value.records;
  if (opening !== undefined) readRecord(opening);
  // Not ended for the client to go on elsewhere: OpenAI's clients would take that for the answer's end.
  const sse = openSse(outgoing, { requestId: publicIds(job) });
  try {
    await sendPages(job, sse, first.value, pages);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    if (streams.length > 1) cancelAll(streams, job.requests);
    await sse.send({ data: errorBody(error) });
  } finally {
    await pages.return();
  }
  await sse.send({ data: "[DONE]" });
  sse.end();
}

/** Until the last record, or the client has gone. */
async function sendPages(
  job: AdmittedJob,
  sse: SseStream,
  first: AnswerPage,
  rest: AsyncGenerator<AnswerPage, void>,
): Promise<void> {
  const print = recordPrinter(job);
  for (let next: AnswerPage | undefined = first; next !== undefined; next = (await rest.next()).value ?? undefined) {
    for (const record of next.records) {
      if (!sse.addText(print(record, next.prompt)) && !(await sse.room())) return;
    }
  }
}

/** What one record of a prompt becomes: the events of some chunks, in which all but choices and usage is the same text. */
function recordPrinter(job: AdmittedJob): (record: StreamRecord, prompt: number) => string {
  const { wording, streams, delivery } = job;
  const begin = `data: ${JSON.stringify(headOf(job, wording.chunk)).slice(0, -1)},"choices":[`;
  const end = delivery.includeUsage ? '],"usage":null}\n\n' : "]}\n\n";
  const used: Usage[] = [];
  let open = streams.length;
  // Indexes of several prompts' records say nothing about where to go on.
  const idOf = ({ index }: StreamRecord) => (streams.length === 1 ? `id: ${index}\n` : "");
  return (record, prompt) => {
    if (record.plainText !== undefined) {
      const choice = wording.plainChoice(record.plainText, prompt);
      if (choice !== undefined) return choice === "" ? "" : idOf(record) + begin + choice + end;
    }
    const read = readRecord(record);
    const chunks = wording.chunkChoices(read, prompt).map((choice) => begin + JSON.stringify(choice) + end);
    if (read.usage !== undefined) used.push(read.usage);
    if (record.final) open--;
    if (open === 0 && delivery.includeUsage) chunks.push(`${begin}],"usage":${JSON.stringify(totalUsage(used))}}\n\n`);
    const last = chunks.pop();
    return last === undefined ? "" : chunks.join("") + idOf(record) + last;
  };
}
