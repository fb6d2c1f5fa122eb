/** Asks for an API key, if the gateway does. */
import { useState } from "preact/hooks";
import { hasKey, setKey, wanted } from "../client/key.js";
import { forgetAll } from "../client/poll.js";

export function KeyForm() {
  const [text, setText] = useState("");
  if (wanted.value === undefined) return null;
  const give = (event: Event) => {
    event.preventDefault();
    setKey(text);
    setText("");
    forgetAll();
  };
  return (
    <form class="sheet key" onSubmit={give}>
      <label>
        This gateway asks for an API key: {wanted.value}
        <input
          type="password"
          autocomplete="off"
          required
          pattern="[!-~]+"
          size={48}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <button type="submit" class="main">
        Use key
      </button>
    </form>
  );
}

export function ForgetKey() {
  if (!hasKey()) return null;
  const forget = () => {
    setKey("");
    forgetAll();
  };
  return (
    <button type="button" class="quiet" onClick={forget}>
      Forget key
    </button>
  );
}
