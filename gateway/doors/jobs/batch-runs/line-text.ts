/** Writes the result of a line as it stands in the file of outputs or of errors. */
import { createHash } from "node:crypto";
import type { LineFault } from "../../../batches/line.js";
import type { LineAnswer } from "./ask-line.js";

/** Names a line in the output files: the same name in each run. */
export function lineId(batch: string, number: number): string {
  const digest = createHash("sha256").update(`${batch} ${number}`).digest();
  return `batch_req_${digest.subarray(0, 18).toString("base64url")}`;
}

export function answerLine(id: string, customId: string, { status, body }: Required<LineAnswer>): Buffer {
  const head = `{"id":"${id}","custom_id":${JSON.stringify(customId)},"response":`;
  const text = body?.toString("utf8").replaceAll(/[\r\n]+/g, " ") ?? "null";
  return Buffer.from(`${head}{"status_code":${status},"request_id":"${id}","body":${text}},"error":null}\n`);
}

export function faultLine(
  id: string,
  customId: string | undefined,
  { code, message }: LineFault,
  line: number,
): Buffer {
  const error = { code, message, line };
  return Buffer.from(`${JSON.stringify({ id, custom_id: customId ?? null, response: null, error })}\n`);
}

/**
 * Whether the run tries the line again, because the fleet has no room now or does not answer. An
 * error that the line itself has caused is its answer, for example after its own deadline.
 */
export function isForNow({ status, body }: LineAnswer): boolean {
  if (status === 429) return true;
  return status === 503 && codeOf(body) !== "expired";
}

function codeOf(body: Buffer | undefined): unknown {
  try {
    const { code, error } = JSON.parse(body?.toString("utf8") ?? "{}") as {
      code?: unknown;
      error?: { code?: unknown };
    };
    return code ?? error?.code;
  } catch {
    return undefined;
  }
}
