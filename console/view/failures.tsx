/** Failures of what the user has done. Each stays until the user closes it. */
import { signal } from "@preact/signals";
import { Refusal } from "../client/refusal.js";

interface Failure {
  readonly id: number;
  /** Which action has failed. */
  readonly action: string;
  readonly error: Error;
}

const failures = signal<readonly Failure[]>([]);
let last = 0;

/** Runs an action, and shows its failure. @returns whether it has not failed */
export async function attempt(action: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    const shown = error instanceof Error ? error : new Error(String(error));
    failures.value = [...failures.value, { id: (last += 1), action, error: shown }];
    return false;
  }
}

export function closeFailure(id: number): void {
  failures.value = failures.value.filter((one) => one.id !== id);
}

export function Failures() {
  return (
    <div class="failures" role="alert">
      {failures.value.map(({ id, action, error }) => (
        <div class="failure" key={id}>
          <div>
            <strong>{action} failed.</strong> <ErrorText error={error} />
          </div>
          <button type="button" onClick={() => closeFailure(id)}>
            Close
          </button>
        </div>
      ))}
    </div>
  );
}

/** Why a part of the page has no data. */
export function ErrorNotice({ error }: { readonly error: Error }) {
  return (
    <p class="failure" role="alert">
      <ErrorText error={error} />
    </p>
  );
}

/** The code, the message and the request id of a refusal. */
export function ErrorText({ error }: { readonly error: Error }) {
  if (!(error instanceof Refusal)) return <span>{error.message}</span>;
  return (
    <span>
      <code>{error.code}</code> {error.message}
      {error.requestId !== undefined && (
        <span class="request-id">
          {" "}
          (request <code>{error.requestId}</code>)
        </span>
      )}
    </span>
  );
}
