/** `npm run stages -- FOLDER` prints where the time of a fleet's steps went. */
import { parts, readStages } from "./read.js";

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("name the folder that the fleet wrote");
const { steps, irregular, us } = readStages(folder);
for (const [place, part] of parts.entries()) console.log(`${(us[place] ?? 0).toFixed(0).padStart(8)} µs  ${part}`);
console.log(`means of ${steps} steps; ${irregular} others passed a stage never or twice`);
