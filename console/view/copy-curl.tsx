/** A button that copies a request as a command for a terminal. */
import { useState } from "preact/hooks";
import { printJson } from "../client/json.js";
import { curlText } from "./curl.js";
import { attempt } from "./failures.js";

export interface CopyCurlProps {
  readonly path: string;
  /** A value, or its text. */
  readonly body: object | string;
  readonly hasKey: boolean;
}

export function CopyCurl({ path, body, hasKey }: CopyCurlProps) {
  const [isCopied, setCopied] = useState(false);
  const text = typeof body === "string" ? body : printJson(body);
  const copy = async () => {
    const command = curlText(location.origin, path, text, hasKey);
    setCopied(await attempt("Copy", () => navigator.clipboard.writeText(command)));
  };
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        Copy as curl
      </button>
      <span class="soft" role="status">
        {isCopied ? "copied" : ""}
      </span>
    </>
  );
}
