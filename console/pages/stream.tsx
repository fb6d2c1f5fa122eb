/** A request: its live text, where it stands, and its end on the user's behalf. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RequestStatus } from "../../gateway/answers.js";
import { change } from "../client/ask.js";
import { Follower, type ReaderState } from "../client/follow.js";
import { usePolledBy } from "../client/poll.js";
import { read } from "../client/ask.js";
import { Confirm } from "../view/confirm.js";
import { attempt, ErrorNotice } from "../view/failures.js";
import { countText, Figures } from "../view/figures.js";
import { Page } from "../view/page.js";
import { hrefOf } from "../view/route.js";
import { Time } from "../view/times.js";
import { noteOpened } from "./opened-streams.js";
import { Outcome } from "./outcome.js";

const REST_MS = 5_000;
const over: readonly RequestStatus["state"][] = ["completed", "failed", "cancelled", "expired"];

export function StreamPage({ id }: { readonly id: string }) {
  const path = `/v2/requests/${encodeURIComponent(id)}`;
  const polled = usePolledBy<RequestStatus>(
    path,
    (signal) => read<RequestStatus>(path, { signal }),
    ({ state }) => (over.includes(state) ? Infinity : REST_MS),
  );
  const status = polled.answer.value;
  const model = status?.model_name;
  useEffect(() => {
    if (model !== undefined) noteOpened({ id, model });
  }, [id, model]);
  const isOver = status !== undefined && over.includes(status.state);
  return (
    <Page name="Stream" polled={polled} above={{ name: "Streams", href: hrefOf("streams") }}>
      {status !== undefined && (
        <>
          <p class="soft">
            Request <code>{id}</code> to <a href={hrefOf("models", [status.model_name])}>{status.model_name}</a>{" "}
            {status.model_version}
          </p>
          {status.subject === undefined ? (
            <Plain status={status} />
          ) : (
            <Text id={id} status={status} onEnd={() => polled.refresh()} />
          )}
          <p class="soft">
            Admitted <Time at={status.admitted_at} />, began <Time at={status.began_at} />, ended{" "}
            <Time at={status.ended_at} />.
          </p>
          <div class="bar" data-actions>
            <Confirm
              verb="Cancel"
              names={`Cancel ${id.slice(0, 12)}`}
              isDisabled={isOver}
              onConfirm={() =>
                attempt(`Cancel ${id}`, () => change(path, { method: "DELETE" })).then(() => polled.refresh())
              }
            />
          </div>
        </>
      )}
    </Page>
  );
}

/** A request without a stream, of a tensor model. */
function Plain({ status }: { readonly status: RequestStatus }) {
  return (
    <>
      <Figures figures={[{ name: "State", value: status.state }]} />
      {status.outcome !== undefined && <Outcome value={status.outcome} name={status.id} />}
    </>
  );
}

interface TextProps {
  readonly id: string;
  readonly status: RequestStatus;
  readonly onEnd: () => void;
}

function Text({ id, status, onEnd }: TextProps) {
  const follower = useMemo(() => new Follower(id), [id]);
  const [from, setFrom] = useState("0");
  useEffect(() => {
    const onVisibility = () => follower.onVisibility(document.hidden);
    document.addEventListener("visibilitychange", onVisibility);
    follower.start();
    return () => {
      document.removeEventListener("visibilitychange", onVisibility);
      follower.stop();
    };
  }, [follower]);
  const state = follower.state.value;
  useEffect(() => {
    if (state.kind === "ended") onEnd();
  }, [state.kind]);
  const isOpen = state.kind !== "ended" && state.kind !== "refused";
  return (
    <>
      <Figures
        figures={[
          { name: "State", value: state.kind === "ended" ? stateOf(status, state) : status.state },
          { name: "Records", value: countText(follower.index.value + 1) },
          { name: "Reader", value: state.kind },
          { name: "Resumed", value: countText(follower.resumed.value) },
        ]}
      />
      {follower.texts.value.map((text, i) => (
        <div class="stream" role="log" aria-label={i === 0 ? "Text" : `Text of choice ${i + 1}`} tabIndex={0} key={i}>
          {text}
          {isOpen && <span class="caret" aria-hidden="true" />}
        </div>
      ))}
      {state.kind === "refused" && <ErrorNotice error={state.error} />}
      {state.kind === "ended" && state.message !== undefined && <p class="notice warn">{state.message}</p>}
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          follower.start(Number(from));
        }}
      >
        <label>
          Index of the first record
          <input
            type="number"
            min="0"
            required
            value={from}
            onInput={({ currentTarget }) => setFrom(currentTarget.value)}
          />
        </label>
        <button type="submit">Resume</button>
        <span class="soft">Reads the stream again from this record on.</span>
      </form>
    </>
  );
}

/** The status is older than the stream's last record. */
function stateOf(status: RequestStatus, { reason }: Extract<ReaderState, { kind: "ended" }>): string {
  if (over.includes(status.state)) return status.state;
  return reason === "finished" ? "completed" : reason === "error" ? "failed" : reason;
}
