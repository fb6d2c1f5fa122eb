/**
 * A list of things with a row for each. Only the rows around the visible part are in the document,
 * so a list of any length scrolls well.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { addList } from "./lists.js";
import { windowOf } from "./window.js";

export interface Column<Row> {
  readonly title: string;
  /** The width of the column, as CSS grid takes it. */
  readonly width: string;
  readonly isNumber?: boolean;
  /** Whether the cells are fields of a form, which lead to no page. */
  readonly isField?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

export interface GridProps<Row> {
  /** The name of the list, which is the name of its page. */
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  /** The page that a row leads to; absent if rows lead to none. */
  readonly hrefOf?: ((row: Row) => string | undefined) | undefined;
  /** Shown in place of rows if there are none. */
  readonly empty: string;
}

const ROW_PX = 36;
/** A longer list scrolls in itself. */
const MOST_PX = 560;

export function Grid<Row>({ name, columns, rows, idOf, hrefOf, empty }: GridProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  /** Set when a key has moved the focus to a row that may not be in the document yet. */
  const isMoved = useRef(false);
  const isHeld = scroller.current?.contains(document.activeElement) === true;
  const height = Math.min(rows.length * ROW_PX, MOST_PX);
  const last = Math.max(0, rows.length - 1);
  const current = Math.min(active, last);
  const { from, to } = windowOf(top, height, ROW_PX, rows.length);
  const template = columns.map(({ width }) => width).join(" ");

  // Keys may come faster than the browser paints, so they move from here.
  const place = useRef({ current, last });
  place.current = { current, last };
  useLayoutEffect(() => {
    const rowElement = () => scroller.current?.querySelector<HTMLElement>(rowSelector(place.current.current));
    return addList({
      move(by) {
        isMoved.current = true;
        if (scroller.current?.contains(document.activeElement) !== true) {
          rowElement()?.focus();
          return;
        }
        const { current, last } = place.current;
        place.current.current = Math.max(0, Math.min(current + by, last));
        setActive(place.current.current);
      },
      act() {
        const action = rowElement()?.querySelector<HTMLElement>("button");
        action?.focus();
        return action !== null && action !== undefined;
      },
    });
  }, []);

  useLayoutEffect(() => {
    const box = scroller.current;
    // A row that goes while it has the focus leaves it to the row in its place.
    if (isHeld && document.activeElement === document.body) isMoved.current = true;
    if (!isMoved.current || box === null) return;
    const y = current * ROW_PX;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + ROW_PX > box.scrollTop + height) box.scrollTop = y + ROW_PX - height;
    const element = box.querySelector<HTMLElement>(rowSelector(current));
    if (element === null) return;
    isMoved.current = false;
    element.focus();
  });

  return (
    <div class="grid" role="grid" aria-label={name} aria-rowcount={rows.length + 1}>
      <div class="head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map(({ title, isNumber }) => (
          <span role="columnheader" class={isNumber === true ? "number" : ""} key={title}>
            {title}
          </span>
        ))}
      </div>
      <div
        class="rows"
        role="rowgroup"
        ref={scroller}
        style={{ height: `${height}px` }}
        onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
      >
        <div class="all" role="presentation" style={{ height: `${rows.length * ROW_PX}px` }}>
          {rows.slice(from, to).map((row, i) => (
            <GridRow
              key={idOf(row)}
              row={row}
              columns={columns}
              id={idOf(row)}
              href={hrefOf?.(row)}
              index={from + i}
              isActive={from + i === current}
              template={template}
              onFocus={() => setActive(from + i)}
            />
          ))}
        </div>
      </div>
      {rows.length === 0 && <p class="empty">{empty}</p>}
    </div>
  );
}

/** The head is the first row of the list. */
const rowSelector = (index: number): string => `[aria-rowindex="${index + 2}"]`;

interface RowProps<Row> extends Pick<GridProps<Row>, "columns"> {
  readonly row: Row;
  readonly id: string;
  readonly href: string | undefined;
  readonly index: number;
  readonly isActive: boolean;
  readonly template: string;
  readonly onFocus: () => void;
}

function GridRow<Row>({ row, columns, id, href, index, isActive, template, onFocus }: RowProps<Row>) {
  const open = () => {
    if (href !== undefined) location.hash = href;
  };
  const first = columns.findIndex(({ isField }) => isField !== true);
  return (
    <div
      class={href === undefined ? "row" : "row opens"}
      role="row"
      aria-rowindex={index + 2}
      data-id={id}
      tabIndex={isActive ? 0 : -1}
      style={{ gridTemplateColumns: template, transform: `translateY(${index * ROW_PX}px)` }}
      onFocus={onFocus}
      onClick={({ target }) => {
        if (target instanceof Element && target.closest("a, button, input") === null) open();
      }}
      onKeyDown={({ key, target, currentTarget }) => {
        if (key === "Enter" && target === currentTarget) open();
      }}
    >
      {columns.map(({ title, isNumber, cell }, i) => (
        <span role="gridcell" class={isNumber === true ? "number" : ""} key={title}>
          {i === first && href !== undefined ? (
            <a href={href} tabIndex={-1}>
              {cell(row)}
            </a>
          ) : (
            cell(row)
          )}
        </span>
      ))}
    </div>
  );
}
