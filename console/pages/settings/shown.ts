/** Which settings the page lists. */
import type { Settings } from "../../../gateway/answers.js";

export type Setting = Settings["settings"][number];

export interface SettingFilters {
  readonly showsAll: boolean;
  /** A part of a name or a value. */
  readonly search: string;
}

export function shownSettings(settings: readonly Setting[], { showsAll, search }: SettingFilters): readonly Setting[] {
  const part = search.toLowerCase();
  return settings.filter(
    (one) => (showsAll || one.value !== one.default) && `${one.name} ${one.value ?? ""}`.toLowerCase().includes(part),
  );
}
