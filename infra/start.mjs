/** `npm start`. Plain JavaScript without dependencies, since installing them is part of its work. */
import "./setup/node-version.mjs";

// Not imported above: on a Node that is too old those files might not even parse, and the sentence about it would be lost.
const { runMain } = await import("./setup/refusal.mjs");
const { start } = await import("./fleet/start.mjs");
await runMain(start);
