/** Reads a path once, when a page is opened, for data that seldom changes. */
import { useEffect, useState } from "preact/hooks";
import { read } from "../client/ask.js";

export interface Once<Answer> {
  readonly answer?: Answer;
  readonly error?: Error;
}

export function useOnce<Answer>(path: string): Once<Answer> {
  const [once, setOnce] = useState<Once<Answer>>({});
  useEffect(() => {
    const leaving = new AbortController();
    read<Answer>(path, { signal: leaving.signal }).then(
      (answer) => setOnce({ answer }),
      (error: unknown) => {
        if (!leaving.signal.aborted) setOnce({ error: error instanceof Error ? error : new Error(String(error)) });
      },
    );
    return () => leaving.abort();
  }, [path]);
  return once;
}
