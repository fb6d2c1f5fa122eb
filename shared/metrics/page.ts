/** The page with all metrics of this process. */
import type { Registry } from "prom-client";
import type { Cells } from "./cells.js";

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export class MetricsPage {
  readonly #cells: Cells;
  /** Has the figures of Node and of the process itself. */
  readonly #process: Registry;

  private constructor(cells: Cells, ofProcess: Registry) {
    this.#cells = cells;
    this.#process = ofProcess;
  }

  /** Loads prom-client, which a process without metrics does not need. */
  static async open(cells: Cells): Promise<MetricsPage> {
    const { collectDefaultMetrics, Registry } = await import("prom-client");
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    return new MetricsPage(cells, registry);
  }

  async text(): Promise<string> {
    return (await this.#process.metrics()) + this.#cells.page();
  }
}
