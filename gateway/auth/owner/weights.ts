/** The shares of tenants, as a setting writes them. */
import { isTenant } from "#shared/contract/tenant.js";

/**
 * Reads `a=1,b=2`: the shares that tenants get when requests have to wait.
 * @returns undefined for any other form
 */
export function parseWeights(text: string): ReadonlyMap<string, number> | undefined {
  const weights = new Map<string, number>();
  for (const part of text === "" ? [] : text.split(",")) {
    const [, tenant = "", weight = ""] = /^\s*([^=\s]+)\s*=\s*(\d{1,4})\s*$/.exec(part) ?? [];
    if (!isTenant(tenant) || Number(weight) < 1 || weights.has(tenant)) return undefined;
    weights.set(tenant, Number(weight));
  }
  return weights;
}

/** @returns undefined if the setting names no tenant */
export function weightsIn({ BATON_TENANT_WEIGHTS: text }: { readonly BATON_TENANT_WEIGHTS: string }) {
  return text === "" ? undefined : parseWeights(text);
}
