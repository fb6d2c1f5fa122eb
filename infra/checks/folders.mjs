/** Imports between folders run down the declared order, and no folders import each other. */
import { folderOf, isScript, isTest, readScript } from "./files.mjs";
import { order, parts } from "./order.mjs";

/**
 * The folders from which each folder imports, with a line for each of these imports.
 *
 * @param {string} root
 * @param {string[]} files
 * @returns {Map<string, Map<string, string[]>>}
 */
export function folderGraph(root, files) {
  const known = new Set(files);
  /** @type {Map<string, Map<string, string[]>>} */
  const graph = new Map();
  for (const path of files.filter((file) => isScript(file) && !isTest(file))) {
    const from = folderOf(path);
    for (const named of readScript(root, path).imports) {
      // An import names the compiled file, and so not whether its source has JSX.
      const imported = known.has(named) ? named : `${named}x`;
      const to = folderOf(imported);
      if (to === from || !known.has(imported)) continue;
      const targets = graph.get(from) ?? new Map();
      graph.set(from, targets);
      targets.set(to, [...(targets.get(to) ?? []), `${path} imports ${imported}`]);
    }
  }
  return graph;
}

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkFolders(root, files) {
  const graph = folderGraph(root, files);
  return [...undeclared(files), ...arrowsUp(graph), ...cycles(graph)];
}

/** @param {string} folder */
const isOrdered = (folder) => parts.some((part) => folder === part || folder.startsWith(`${part}/`));

/** @param {string[]} files */
function undeclared(files) {
  const folders = new Set(files.filter(isScript).map(folderOf).filter(isOrdered));
  const missing = [...folders].filter((folder) => !order.includes(folder));
  const gone = order.filter((folder) => !folders.has(folder));
  return [
    ...missing.map((folder) => `${folder}: has no place in infra/checks/order.mjs`),
    ...gone.map((folder) => `infra/checks/order.mjs: there is no folder ${folder}`),
  ];
}

/** @param {Map<string, Map<string, string[]>>} graph */
function arrowsUp(graph) {
  const faults = [];
  for (const [from, targets] of graph) {
    for (const [to, imports] of targets) {
      if (!isOrdered(from) || order.indexOf(to) < order.indexOf(from)) continue;
      const reason = isOrdered(to) ? `${from} is lower than ${to}` : `${to} is no part of the program`;
      faults.push(...imports.map((line) => `${line}, but ${reason}`));
    }
  }
  return faults;
}

/**
 * Imports between folders that reach each other over any number of steps, in folders without a
 * declared order, too.
 *
 * @param {Map<string, Map<string, string[]>>} graph
 */
function cycles(graph) {
  /** @param {string} start */
  const reachedFrom = (start) => {
    const reached = new Set();
    const open = [...(graph.get(start)?.keys() ?? [])];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
      if (reached.has(folder)) continue;
      reached.add(folder);
      open.push(...(graph.get(folder)?.keys() ?? []));
    }
    return reached;
  };
  const inCycles = [...graph.keys()].filter((folder) => reachedFrom(folder).has(folder));
  return inCycles.flatMap((from) =>
    [...(graph.get(from) ?? [])]
      .filter(([to]) => inCycles.includes(to) && reachedFrom(to).has(from))
      .flatMap(([to, imports]) => imports.map((line) => `${line}, but ${to} imports from ${from}, too`)),
  );
}
