/**
 * Writes the text of choice 0 in the chunks that libraries for AI applications read from a durable
 * stream: the UI message chunks of the AI SDK (ai-sdk.dev, "Stream Protocol"), and the events of
 * the AG-UI protocol (docs.ag-ui.com), which TanStack AI reads. A record's chunks follow from that
 * record alone, so an offset is valid in every form. All functions are pure.
 */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { StreamRecord } from "../../stream/open-stream.js";

export type ChunkForm = "ai-sdk" | "ag-ui";

/** The chunks of a stream in a form: `text` returns JSON, the other members return objects. */
interface Teller {
  /** The chunks before the text of record 0. */
  readonly beginning: readonly object[];
  /**
   * @param json a text as a JSON string
   * @returns a chunk as JSON
   */
  readonly text: (json: string) => string;
  readonly ending: (ending: Ending) => readonly object[];
}

type Ending = Pick<TokenRecord, "reason" | "error"> & { readonly finishReason: "stop" | "length" | undefined };

/**
 * @param id of the request, which names the message: a reader that starts again gets the same
 * message
 * @returns a function that gives a record's chunks as JSON, with a comma between two; an empty text
 * if a record has no chunks
 */
export function chunkWriter(form: ChunkForm, id: string): (record: StreamRecord) => string {
  const { beginning, text, ending } = form === "ai-sdk" ? aiSdk(id) : agUi(id);
  return ({ index, json, plainText }) => {
    const chunks = index === 0 ? jsonsOf(beginning) : [];
    if (plainText !== undefined) {
      if (plainText !== '""') chunks.push(text(plainText));
    } else {
      const { choices, final, reason, error } = tokenRecord.parse(JSON.parse(json));
      const choice = choices.find((one) => one.index === 0);
      if (choice !== undefined && choice.text !== "") chunks.push(text(JSON.stringify(choice.text)));
      if (final) chunks.push(...jsonsOf(ending({ reason, error, finishReason: choice?.finish_reason })));
    }
    return chunks.join();
  };
}

function jsonsOf(chunks: readonly object[]): string[] {
  return chunks.map((chunk) => JSON.stringify(chunk));
}

function aiSdk(id: string): Teller {
  const part = { id: "0" };
  return {
    beginning: [{ type: "start", messageId: id }, { type: "start-step" }, { type: "text-start", ...part }],
    text: (json) => `{"type":"text-delta","id":"${part.id}","delta":${json}}`,
    ending({ reason, error, finishReason }) {
      if (reason === "cancelled") return [{ type: "abort", reason: error?.message }];
      if (error !== undefined) return [{ type: "error", errorText: error.message }];
      return [{ type: "text-end", ...part }, { type: "finish-step" }, { type: "finish", finishReason }];
    },
  };
}

function agUi(id: string): Teller {
  const run = { threadId: id, runId: id };
  const message = { messageId: id };
  const content = JSON.stringify({ type: "TEXT_MESSAGE_CONTENT", ...message }).slice(0, -1);
  return {
    beginning: [
      { type: "RUN_STARTED", ...run },
      { type: "TEXT_MESSAGE_START", ...message, role: "assistant" },
    ],
    text: (json) => `${content},"delta":${json}}`,
    ending({ error, finishReason }) {
      if (error !== undefined) return [{ type: "RUN_ERROR", ...run, ...error }];
      return [
        { type: "TEXT_MESSAGE_END", ...message },
        { type: "RUN_FINISHED", ...run, finishReason },
      ];
    },
  };
}
