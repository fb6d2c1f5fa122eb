/** The settings and the connections with which this gateway runs, for operators. */
import { fixedError } from "#shared/errors.js";
import type { ShownSetting } from "#shared/shown-settings.js";
import type { Caller } from "./caller.js";

/** Whether a broker takes the commands of this process. */
export interface Connections {
  readonly redis: boolean;
  readonly nats: boolean;
}

export interface ProcessSettingsTerms {
  readonly settings: readonly ShownSetting[];
  /** Asks no broker. */
  readonly connections: () => Connections;
  /** Whether a proxy's header says whose a request is. */
  readonly hasTenantHeader: boolean;
}

export class ProcessSettings {
  readonly #terms: ProcessSettingsTerms;

  constructor(terms: ProcessSettingsTerms) {
    this.#terms = terms;
  }

  /**
   * Behind a proxy that names tenants, every request with a tenant is a client's.
   * @throws InferenceError `forbidden`
   */
  show(caller: Caller): { readonly settings: readonly ShownSetting[]; readonly connections: Connections } {
    const { settings, connections, hasTenantHeader } = this.#terms;
    if (hasTenantHeader && caller.tenant !== "") throw fixedError("forbidden", "settings");
    return { settings, connections: connections() };
  }
}
