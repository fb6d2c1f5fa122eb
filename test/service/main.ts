/**
 * A process that asks the services as a door does, without a transport. It logs the outcome of each
 * operation under the operation's name.
 */
import { randomBytes } from "node:crypto";
import { Lifecycle } from "#shared/lifecycle.js";
import { parseSettings, settingsOrExit } from "#shared/settings.js";
import { openParts } from "../../gateway/service/open.js";
import { servicesOf } from "../../gateway/service/services.js";
import { serviceSettings } from "../../gateway/service/settings.js";
import { until } from "../support/until.js";
import { operations } from "./operations.js";

const { config, log } = settingsOrExit("service", (env) => parseSettings(serviceSettings, env));
const lifecycle = new Lifecycle(log);
const name = `gw-${randomBytes(8).toString("hex")}`;
const parts = await openParts({ kind: "gateway", name, config, log }, lifecycle);
const { directory } = parts.fleet;
await until(() => ["simple", "tale-gpt"].every((model) => directory.all().some((one) => one.name === model)));
const floor = { ...servicesOf(parts, { config, hasTenants: false, log }), parts };
for (const [operation, run] of Object.entries(operations)) log.info({ saw: await run(floor) }, operation);
await lifecycle.close();
