/** A tenant as operators see it. */
import { timeText } from "./key-view.js";
import type { TenantRecord } from "./owner/records.js";

export type TenantView = ReturnType<typeof tenantView>;

export function tenantView({ id, weight = 1, models, state, limits, createdAt }: TenantRecord) {
  return { id, object: "tenant", weight, models, state, limits, created_at: timeText(createdAt ?? null) } as const;
}
