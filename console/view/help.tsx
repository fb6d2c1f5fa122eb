/** The list of keys, over the page. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { isHelpShown, type KeyedPage } from "./keys.js";

export function Help({ pages }: { readonly pages: readonly KeyedPage[] }) {
  const close = useRef<HTMLButtonElement>(null);
  const isShown = isHelpShown.value;
  useLayoutEffect(() => {
    if (isShown) close.current?.focus();
  }, [isShown]);
  if (!isShown) return null;
  const keys = [
    ...pages.map(({ key, name }) => [`g ${key}`, name] as const),
    ["/", "Search"],
    ["j  k", "Next row, row before"],
    ["Enter", "Open the row"],
    [".", "The row's actions, or the page's"],
    ["Escape", "Close, or go back"],
    ["?", "This help"],
  ] as const;
  return (
    <div class="help">
      <div class="sheet" role="dialog" aria-modal="true" aria-label="Keys">
        <h2>Keys</h2>
        <dl>
          {keys.map(([key, meaning]) => (
            <>
              <dt>{key}</dt>
              <dd>{meaning}</dd>
            </>
          ))}
        </dl>
        <div>
          <button type="button" ref={close} onClick={() => (isHelpShown.value = false)}>
            Close
          </button>
        </div>
      </div>
    </div>
  );
}
