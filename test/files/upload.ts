/** Uploads as raw forms, whole or broken off, for requests that no client would send. */
import { request, type ClientRequest } from "node:http";

export interface Part {
  readonly field: string;
  readonly name?: string;
  readonly text: string | Buffer;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const BOUNDARY = "a-boundary";
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
export const FORM_END = `\r\n--${BOUNDARY}--\r\n`;

export function partHead({ field, name }: Omit<Part, "text">): string {
  const file = name === undefined ? "" : `; filename="${name}"\r\nContent-Type: application/octet-stream`;
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${field}"${file}\r\n\r\n`;
}

export function formOf(parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap((part) => [partHead(part), part.text, "\r\n"]);
  return Buffer.concat([...pieces, `--${BOUNDARY}--\r\n`].map((piece) => Buffer.from(piece)));
}

export async function upload(
  url: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const sent = { "content-type": FORM_TYPE, ...headers };
  const answer = await fetch(`${url}/v1/files`, {
    method: "POST",
    body: new Uint8Array(Buffer.from(body)),
    headers: sent,
  });
  return { status: answer.status, body: await answer.json() };
}

/** Begins an upload; written bytes leave at once, and only the caller ends the request. */
export function beginUpload(url: string, headers: Readonly<Record<string, string>> = {}): ClientRequest {
  const sent = request(`${url}/v1/files`, { method: "POST", headers: { "content-type": FORM_TYPE, ...headers } });
  sent.on("error", () => undefined);
  sent.write(partHead({ field: "purpose" }) + "batch\r\n" + partHead({ field: "file", name: "a.jsonl" }));
  return sent;
}

export function answerTo(sent: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (answer) => {
      let text = "";
      answer.on("data", (piece: Buffer) => (text += piece.toString()));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: JSON.parse(text) as unknown }));
    });
  });
}
