/** The requests that this tab has opened or sent, the newest first, for the tab's session. */
import { signal } from "@preact/signals";

export interface OpenedStream {
  readonly id: string;
  readonly model: string;
}

const PLACE = "baton.streams";
const MOST = 100;

export const opened = signal<readonly OpenedStream[]>(readOpened());

export function noteOpened(stream: OpenedStream): void {
  const others = opened.peek().filter(({ id }) => id !== stream.id);
  opened.value = [stream, ...others].slice(0, MOST);
  sessionStorage.setItem(PLACE, JSON.stringify(opened.value));
}

function readOpened(): readonly OpenedStream[] {
  const text = sessionStorage.getItem(PLACE);
  return text === null ? [] : (JSON.parse(text) as OpenedStream[]);
}
