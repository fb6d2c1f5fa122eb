/** The states of deliveries, and the changes that a delivery takes. */
import type { Delivery } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import type { Action } from "../../listing/actions.js";

export const deliveryStates = ["pending", "delivered", "failed"] as const satisfies readonly Delivery["state"][];

export const deliveryActions: readonly Action<Delivery>[] = [
  {
    verb: "Replay",
    asks: false,
    isFor: ({ state }) => state !== "pending",
    run: ({ id }) => change(`/v2/deliveries/${encodeURIComponent(id)}/replay`, { method: "POST", body: {} }),
  },
];
