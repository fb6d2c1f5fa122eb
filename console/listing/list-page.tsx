/** The page of a list: its filters, its rows with their actions, and the way to older rows. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Page as PageOf } from "../../gateway/answers.js";
import { read } from "../client/ask.js";
import { usePolledBy } from "../client/poll.js";
import { Grid, type Column } from "../view/grid.js";
import { Page } from "../view/page.js";
import { hrefOf, route } from "../view/route.js";
import { ActionButtons, type Action } from "./actions.js";
import { ChosenBar, choiceColumn } from "./chosen.js";
import { FilterBar } from "./filter-bar.js";
import { questionOf, type Filter } from "./filters.js";
import { findRows, PAGE, type Found } from "./find-rows.js";
import { countOf, type Noun } from "./summary.js";

export interface ListPageProps<Row> {
  readonly name: string;
  /** The page in the address. */
  readonly page: string;
  /** The path of the list. */
  readonly path: string;
  readonly noun: Noun;
  readonly filters: readonly Filter<Row>[];
  /** The first column leads to the row's own page. */
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  /** The page that a row leads to; undefined: none. Absent: the page of its id. */
  readonly hrefOf?: (row: Row) => string | undefined;
  readonly actions?: readonly Action<Row>[];
  /** The width of the column with the buttons of a row, as CSS grid takes it. */
  readonly actionsWidth?: string;
  /** Buttons of the page itself. */
  readonly own?: ComponentChildren;
  /** Shown above the list. */
  readonly children?: ComponentChildren;
}

/** A rest for each request of a look, in ms, so that a page asks about once in this time. */
const REST_MS = 5_000;
const NONE: ReadonlySet<string> = new Set();

export function ListPage<Row>(props: ListPageProps<Row>) {
  const { name, page, path, noun, filters, idOf, actions = [], own, children } = props;
  const { query } = route.value;
  const question = questionOf(filters, query);
  const polled = usePolledBy<Found<Row>>(
    `${path} ${question.name}`,
    (signal) => {
      const readPage = (after: string | undefined) => {
        const asked = new URLSearchParams({ limit: String(PAGE), ...question.sent, ...(after && { after }) });
        return read<PageOf<Row>>(`${path}?${asked.toString()}`, { signal });
      };
      return findRows(readPage, query["after"], question.fits);
    },
    ({ requests }) => requests * REST_MS,
  );
  // The rows of another look are others, so none of them is chosen.
  const [{ of, ids }, setChosen] = useState({ of: question.name, ids: NONE });
  const choice = {
    ids: of === question.name ? ids : NONE,
    choose: (ids: ReadonlySet<string>) => setChosen({ of: question.name, ids }),
  };
  const found = polled.answer.value;
  const refresh = () => polled.refresh();
  const actionColumn: Column<Row> = {
    title: "Actions",
    width: props.actionsWidth ?? "166px",
    cell: (row) => <ActionButtons actions={actions} thing={row} id={idOf(row)} isInRow onDone={refresh} />,
  };
  const columns = actions.length === 0 ? props.columns : [choiceColumn(idOf, choice), ...props.columns, actionColumn];
  return (
    <Page name={name} polled={polled} actions={own}>
      {children}
      {filters.length > 0 && (
        <div class="bar">
          <FilterBar filters={filters} />
        </div>
      )}
      {found !== undefined && (
        <>
          {actions.length > 0 && (
            <ChosenBar rows={found.rows} idOf={idOf} actions={actions} noun={noun} choice={choice} onDone={refresh} />
          )}
          <Grid
            name={name}
            columns={columns}
            rows={found.rows}
            idOf={idOf}
            hrefOf={props.hrefOf ?? ((row) => hrefOf(page, [idOf(row)]))}
            empty={emptyText(noun, found.hasMore, question.name)}
          />
          <Paging page={page} found={found} noun={noun} />
        </>
      )}
    </Page>
  );
}

function emptyText([, several]: Noun, hasMore: boolean, name: string): string {
  if (hasMore) return `None of the newest ${several} fits. Older ones may.`;
  return name === "[null]" ? `There are no ${several}.` : `No ${several} fit.`;
}

/** Links, so that a user can share a page of the list, and go back. */
function Paging<Row>({ page, found: { rows, hasMore, last }, noun }: PagingProps<Row>) {
  const { query } = route.value;
  const isNewest = query["after"] === undefined;
  if (isNewest && !hasMore) return null;
  return (
    <div class="bar" role="group" aria-label="Pages of the list">
      {!isNewest && (
        <a class="button" href={hrefOf(page, [], { ...query, after: undefined })}>
          Newest
        </a>
      )}
      {hasMore && (
        <a class="button" href={hrefOf(page, [], { ...query, after: last })}>
          Older
        </a>
      )}
      <span class="soft">
        {isNewest ? "The newest" : "Older"}: {countOf(rows.length, noun)}
      </span>
    </div>
  );
}

interface PagingProps<Row> {
  readonly page: string;
  readonly found: Found<Row>;
  readonly noun: Noun;
}
