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
  /** A value to send as JSON, or bytes. */
  readonly body?: object | Blob;
  readonly signal?: AbortSignal;
  /** Set for a path that ignores Idempotency-Key, because a repeat would change it again. */
  readonly isOnce?: boolean;
}

/**
 * @returns an answer of a status below 400
 * @throws Refusal or Away
 */
export async function ask(path: string, { method = "GET", headers, body, signal }: Question = {}): Promise<Response> {
  const isBytes = body instanceof Blob;
  const type = body === undefined ? {} : { "content-type": isBytes ? "application/octet-stream" : "application/json" };
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: { ...type, ...credentials(), ...headers },
      cache: "no-store",
      redirect: "error",
      ...(body !== undefined && { body: isBytes ? body : printJson(body) }),
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

/**
 * Reads an answer in JSON.
 * @throws Refusal or Away
 */
export async function read<Answer>(path: string, question?: Question): Promise<Answer> {
  const response = await ask(path, question);
  return parseJson(await textOf(response, question?.signal)) as Answer;
}

/**
 * Changes something, once: a change that got no answer is sent again under the same key, if the
 * path heeds the key.
 * @throws Refusal or Away
 */
export async function change<Answer>(path: string, question: Question): Promise<Answer | undefined> {
  const keyed = { ...question, headers: { ...question.headers, "idempotency-key": crypto.randomUUID() } };
  const response = await ask(path, keyed).catch((error: unknown) => {
    if (error instanceof Away && question.isOnce !== true) return ask(path, keyed);
    throw error;
  });
  const text = await textOf(response, question.signal);
  return text === "" ? undefined : (parseJson(text) as Answer);
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
