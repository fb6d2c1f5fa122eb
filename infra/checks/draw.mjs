/** Draws the graph of the folders from the imports, as a Mermaid picture. */
import { listFiles } from "./files.mjs";
import { folderGraph } from "./folders.mjs";
import { order, parts } from "./order.mjs";

/**
 * Leaves out an arrow that follows from other arrows: if a folder imports from a second folder, and
 * the second from a third, no arrow leads from the first to the third.
 *
 * @param {string} root
 * @returns {string} lines of Mermaid, without the fence
 */
export function drawFolders(root) {
  const graph = folderGraph(root, listFiles(root));
  const lines = ["flowchart TD"];
  for (const part of parts.toReversed()) {
    const folders = order.filter((folder) => partOf(folder) === part).toReversed();
    lines.push(
      `  subgraph part_${part}["${part}"]`,
      ...folders.map((folder) => `    ${node(folder)}["${folder}/"]`),
      "  end",
    );
  }
  for (const from of order.toReversed()) {
    const targets = [...(graph.get(from)?.keys() ?? [])];
    for (const to of targets.toSorted((a, b) => order.indexOf(b) - order.indexOf(a))) {
      const others = targets.filter((other) => other !== to);
      if (!others.some((other) => reaches(graph, other, to))) lines.push(`  ${node(from)} --> ${node(to)}`);
    }
  }
  return lines.join("\n");
}

/** @param {string} folder */
const partOf = (folder) => folder.split("/", 1)[0];

/** @param {string} folder */
const node = (folder) => folder.replaceAll("/", "_");

/**
 * @param {Map<string, Map<string, string[]>>} graph
 * @param {string} from
 * @param {string} to
 * @param {Set<string>} [seen] folders that the search has left, because imports may run in a circle
 * @returns {boolean}
 */
function reaches(graph, from, to, seen = new Set()) {
  if (seen.has(from)) return false;
  seen.add(from);
  return [...(graph.get(from)?.keys() ?? [])].some((next) => next === to || reaches(graph, next, to, seen));
}
