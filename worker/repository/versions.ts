/** Which versions of a model are served. Sniffing for the backend goes by string order, choosing by number. */
import type { VersionPolicy } from "#shared/model/config.js";

/** Triton keeps versions as int64. */
const MAX_VERSION = 2n ** 63n - 1n;

/** @returns the names that are version numbers, ascending: `01` and `latest` are none. */
export function versionNumbers(names: readonly string[]): string[] {
  return names
    .filter((name) => /^(?:0|[1-9]\d{0,18})$/.test(name) && BigInt(name) <= MAX_VERSION)
    .sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
}

/** @param available ascending. @returns ascending. */
export function chooseVersions(policy: VersionPolicy | undefined, available: readonly string[]): readonly string[] {
  if (policy?.specific !== undefined) {
    const wanted = new Set(policy.specific.versions.map(String));
    return available.filter((version) => wanted.has(version));
  }
  if (policy?.latest === undefined) return available;
  return policy.latest.num_versions === 0 ? [] : available.slice(-policy.latest.num_versions);
}
