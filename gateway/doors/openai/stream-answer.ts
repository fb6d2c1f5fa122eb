/**
 * Sends an answer as a stream of chunks (server-sent events). The last event of each record has the
 * record's index as its id. So a client that lost the connection can resume from there at
 * `/v2/requests/<id>/events`.
 */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { StreamRecord } from "../../stream/open-stream.js";
import type { Usage } from "../../generation/collect.js";
import { answerPages, readRecord, type AnswerPage } from "../../generation/read-answer.js";
import { cancelAll, cancelUnlessBegun } from "../../generation/leaving.js";
import { isStillThere } from "../../http/disconnect.js";
import { openSse, type SseStream } from "../../http/sse.js";
import { errorBody } from "../../formats/errors.js";
import { answerHead, publicIds, totalUsage, type AdmittedRequest } from "../../formats/openai/request.js";

/**
 * The HTTP head waits for the first record, which may be a failure with a status of its own.
 * @throws InferenceError before any part of the answer
 */
export async function streamAnswer(
  request: AdmittedRequest,
  outgoing: ServerResponse,
  disconnected: AbortSignal,
): Promise<void> {
  const { streams } = request;
  cancelUnlessBegun(streams, request.generations, () => outgoing.headersSent, disconnected);
  const pages = mergePages(streams.map((stream, prompt) => answerPages(stream, disconnected, prompt)));
  const first = await pages.next();
  if (first.done === true) return;
  if (!(await isStillThere(outgoing))) {
    await pages.return();
    return;
  }
  const [opening] = first.value.records;
  if (opening !== undefined) readRecord(opening);
  // This stream is not `resumable`. A stopping gateway ends resumable streams, which OpenAI's
  // clients would take for the end of the answer.
  const sse = openSse(outgoing, { requestId: publicIds(request) });
  try {
    await sendPages(request, sse, first.value, pages);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    if (streams.length > 1) cancelAll(streams, request.generations);
    await sse.send({ data: errorBody(error, "openai") });
  } finally {
    await pages.return();
  }
  await sse.send({ data: "[DONE]" });
  sse.end();
}

/** Sends the pages until the last record, or until the client has disconnected. */
async function sendPages(
  request: AdmittedRequest,
  sse: SseStream,
  first: AnswerPage,
  rest: AsyncGenerator<AnswerPage, void>,
): Promise<void> {
  const render = recordRenderer(request);
  for (let next: AnswerPage | undefined = first; next !== undefined; next = (await rest.next()).value ?? undefined) {
    for (const record of next.records) {
      if (!sse.addText(render(record, next.prompt)) && !(await sse.room())) return;
    }
  }
}

/**
 * @returns a function that renders one record of a prompt as the events of its chunks. All but
 * choices and usage is the same in every event, and rendered only once.
 */
function recordRenderer(request: AdmittedRequest): (record: StreamRecord, prompt: number) => string {
  const { renderer, streams, delivery } = request;
  const head = `data: ${JSON.stringify(answerHead(request, renderer.chunkObject)).slice(0, -1)},"choices":[`;
  const tail = delivery.includeUsage ? '],"usage":null}\n\n' : "]}\n\n";
  const usages: Usage[] = [];
  let unfinished = streams.length;
  // With several prompts, a record's index does not give the position to resume from.
  const idOf = ({ index }: StreamRecord) => (streams.length === 1 ? `id: ${index}\n` : "");
  return (record, prompt) => {
    if (record.plainText !== undefined) {
      const choice = renderer.renderTextChunk(record.plainText, prompt);
      if (choice !== undefined) return choice === "" ? "" : idOf(record) + head + choice + tail;
    }
    const read = readRecord(record);
    const chunks = renderer.renderChunks(read, prompt).map((choice) => head + JSON.stringify(choice) + tail);
    if (read.usage !== undefined) usages.push(read.usage);
    if (record.final) unfinished--;
    if (unfinished === 0 && delivery.includeUsage)
      chunks.push(`${head}],"usage":${JSON.stringify(totalUsage(usages))}}\n\n`);
    const last = chunks.pop();
    return last === undefined ? "" : chunks.join("") + idOf(record) + last;
  };
}

type Pages = AsyncGenerator<AnswerPage, void>;

/** Yields the pages of several prompts' generations in one series, as the pages arrive. */
function mergePages(sources: readonly Pages[]): Pages {
  const [only, ...others] = sources;
  // Nearly every answer has one prompt. Racing promises would double the cost of each record.
  return only !== undefined && others.length === 0 ? only : inOrderOfArrival(sources);
}

/**
 * Asks a source for its next page only after yielding the page before, so that a slow reader holds
 * at most one page of each.
 */
async function* inOrderOfArrival(sources: readonly Pages[]): Pages {
  const pending = new Map(sources.map((source) => [source, nextPage(source)]));
  try {
    while (pending.size > 0) {
      const { source, result } = await Promise.race(pending.values());
      if (result.done === true) pending.delete(source);
      else {
        yield result.value;
        pending.set(source, nextPage(source));
      }
    }
  } finally {
    // Does not wait: a source that waits for its next record ends when that record comes, or when
    // its own signal aborts.
    for (const source of sources) source.return().catch(() => undefined);
  }
}

async function nextPage(source: Pages) {
  return { source, result: await source.next() };
}
