/** Reads the answer of any declared path, also of a path whose answer never ends by itself. */

/** The paths whose events come for as long as a client listens. */
export const ENDLESS = "/v2/fleet/events";

/** @returns the text of the answer; of an answer without an end the first piece */
export async function answerText(response: Response): Promise<string> {
  const { body, status, url } = response;
  if (body === null || status !== 200 || new URL(url).pathname !== ENDLESS) return response.text();
  const reader = body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return Buffer.from(value ?? []).toString();
}
