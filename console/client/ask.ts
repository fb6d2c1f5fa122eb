/** Sends requests to the gateway that has served the page. */
import { signal } from "@preact/signals";
import { parseJson, printJson } from "./json.js";
import { credentials, wanted } from "./key.js";
import { Away, refusalOf } from "./refusal.js";

/** Whether the last request got no answer. */
export const isAway = signal(false);

export interface Question {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  /** A value to send as JSON, or bytes, or a form with a file. */
  readonly body?: object | Blob | FormData;
  readonly signal?: AbortSignal;
}

/**
 * @returns an answer of a status below 400
 * @throws Refusal or Away
 */
export async function ask(path: string, { method = "GET", headers, body, signal }: Question = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...typeOf(body), ...credentials(), ...headers },
      cache: "no-store",
      redirect: "error",
      ...(body !== undefined && { body: isRaw(body) ? body : printJson(body) }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    isAway.value = true;
    throw new Away("the gateway does not answer", { cause: error });
  }
  isAway.value = false;
  if (response.status < 400) return response;
  const refusal = refusalOf(response.status, await response.text(), response.headers.get("x-request-id"));
  if (refusal.status === 401) wanted.value = refusal.message;
  throw refusal;
}

const isRaw = (body: object): body is Blob | FormData => body instanceof Blob || body instanceof FormData;

/** The browser itself names the type of a form, since the type has the form's boundary. */
function typeOf(body: object | undefined): Record<string, string> {
  if (body === undefined || body instanceof FormData) return {};
  return { "content-type": body instanceof Blob ? "application/octet-stream" : "application/json" };
}

/**
 * Reads an answer in JSON.
 * @throws Refusal or Away
 */
export async function read<Answer>(path: string, question?: Question): Promise<Answer> {
  const response = await ask(path, question);
  return parseJson(await textOf(response, question?.signal)) as Answer;
}

/**
 * Changes something, once: a change that got no answer is sent again under the same key.
 * @throws Refusal or Away
 */
export async function change<Answer>(path: string, question: Question): Promise<Answer | undefined> {
  const keyed = { ...question, headers: { ...question.headers, "idempotency-key": crypto.randomUUID() } };
  const response = await ask(path, keyed).catch((error: unknown) => {
    if (error instanceof Away) return ask(path, keyed);
    throw error;
  });
  const text = await textOf(response, question.signal);
  return text === "" ? undefined : (parseJson(text) as Answer);
}

/**
 * Reads at most the first bytes of an answer, and leaves the rest unread.
 * @throws Refusal or Away
 */
export async function readBeginning(
  path: string,
  most: number,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const leaving = new AbortController();
  const reader = (await ask(path, { signal: leaving.signal })).body?.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (let part = await reader?.read(); part?.done === false && size <= most; part = await reader?.read()) {
    parts.push(part.value);
    size += part.value.length;
  }
  leaving.abort();
  return { text: await new Blob(parts).slice(0, most).text(), isWhole: size <= most };
}

async function textOf(response: Response, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    if (signal?.aborted === true) throw error;
    isAway.value = true;
    throw new Away("the gateway broke off its answer", { cause: error });
  }
}
