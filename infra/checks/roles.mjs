/**
 * The users of Redis have every command that the code of their process calls, itself or in a
 * script, and no further command. So no process lacks a command in production alone. The users of
 * NATS have every subject. The code of a process is all code that its first file reaches by
 * imports.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { Redis } from "ioredis";
import { constantsOf, readModule, walk } from "./syntax.mjs";

/** @typedef {import("./syntax.mjs").Module} Module */
/** @typedef {Map<string, string>} Uses a place for each command or subject */

const REDIS_LIST = "shared/redis/roles.ts";
const NATS_LIST = "gateway/subscriptions/nats-roles.ts";
const SUBJECTS = "shared/queue/keys.ts";

/** The first file of each process. Redis gives the operator's rights by categories. */
const ENTRIES = { gateway: "gateway/main.ts", worker: "worker/main.ts", jobs: "gateway/doors/jobs/main.ts" };

/** Files with subjects that a process reaches and does not use. */
const UNUSED = [
  // A document, and the rights of readers in their own account.
  "gateway/api/streams/asyncapi.ts",
  "gateway/subscriptions/reader-account.ts",
];
/** The jobs process makes no subscriptions. */
const UNUSED_BY_JOBS = ["gateway/subscriptions/consumers.ts"];

const commands = new Set(Redis.prototype.getBuiltinCommands());
/** Commands whose rights Redis gives by subcommand. */
const CONTAINERS = new Set(["acl", "client", "cluster", "config", "function", "script", "xgroup", "xinfo"]);
/** An object that sends commands to Redis, by the end of its text. */
const CLIENT = /(?:redis|server|connection|reader|master|forLarge\)?|For\([^)]*\))$/i;
/** The scripts of BullMQ, but for a part that Baton does not use. */
const BULLMQ = "node_modules/bullmq/dist/cjs/scripts";

/** The subjects behind calls of the client library for JetStream. */
const JETSTREAM = new Map([
  ["streams.info", "$JS.API.STREAM.INFO.*"],
  ["streams.add", "$JS.API.STREAM.CREATE.*"],
  ["streams.update", "$JS.API.STREAM.UPDATE.BATON_TOKENS"],
  ["streams.purge", "$JS.API.STREAM.PURGE.*"],
  ["streams.getMessage", "$JS.API.STREAM.MSG.GET.BATON_TOKENS"],
  ["consumers.info", "$JS.API.CONSUMER.INFO.BATON_TOKENS.*"],
  ["consumers.add", "$JS.API.CONSUMER.DURABLE.CREATE.BATON_TOKENS.*"],
  ["consumers.delete", "$JS.API.CONSUMER.DELETE.BATON_TOKENS.*"],
  ["consumers.list", "$JS.API.CONSUMER.LIST.BATON_TOKENS"],
  ["consumers.get", "$JS.API.CONSUMER.MSG.NEXT.BATON_TOKENS.*"],
  ["streams.delete", "$JS.API.STREAM.DELETE.*"],
  ["streams.deleteMessage", "$JS.API.STREAM.MSG.DELETE.*"],
  ["streams.find", "$JS.API.STREAM.NAMES"],
  ["streams.list", "$JS.API.STREAM.LIST"],
]);

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {string[]} a sentence for each fault
 */
export function checkRoles(root, files) {
  if (!files.includes(REDIS_LIST) || !files.includes(NATS_LIST)) return [];
  const there = new Set(files);
  const ofRedis = constantsOf(root, REDIS_LIST);
  const ofNats = constantsOf(root, NATS_LIST);
  return Object.entries(ENTRIES).flatMap(([role, entry]) => {
    const modules = reachedFrom(root, there, entry);
    const uses = commandsOf(root, there, modules, role === "jobs");
    const others = wordsOf(`${ofRedis["ofClients"]} ${ofRedis["ofBullMq"]}`);
    const listed = wordsOf(ofRedis["rights"][role].commands);
    const { publish, subscribe } = ofNats["natsRights"][role];
    return [
      ...lacking(role, uses, REDIS_LIST, (command) => listed.includes(command)),
      ...listed
        .filter((command) => !uses.has(command) && !others.includes(command))
        .map((command) => `${REDIS_LIST}: the ${role} has ${command}, which nothing calls`),
      ...lacking(role, subjectsOf(root, modules, role === "jobs"), NATS_LIST, (subject) =>
        [...publish, ...subscribe].some((pattern) => covers(pattern, subject)),
      ),
    ];
  });
}

/**
 * @param {string} role
 * @param {Uses} uses
 * @param {string} list
 * @param {(use: string) => boolean} isListed
 */
function lacking(role, uses, list, isListed) {
  const missing = [...uses].filter(([use]) => !isListed(use));
  return missing.map(([use, place]) => `${place}: the ${role} uses ${use}, which ${list} does not give it`);
}

/**
 * @param {string} root
 * @param {Set<string>} there
 * @param {string} entry
 * @returns {Module[]} the files of a process
 */
function reachedFrom(root, there, entry) {
  /** @type {Map<string, Module>} */
  const reached = new Map();
  const visit = (/** @type {string} */ path) => {
    if (reached.has(path) || !there.has(path)) return;
    const module = readModule(root, path);
    reached.set(path, module);
    module.imports.forEach(visit);
  };
  visit(entry);
  return [...reached.values()];
}

/**
 * @param {string} root
 * @param {Set<string>} there
 * @param {Module[]} modules
 * @param {boolean} withBullMq
 * @returns {Uses}
 */
function commandsOf(root, there, modules, withBullMq) {
  /** @type {Uses} */
  const uses = new Map();
  /**
   * @param {string} command
   * @param {unknown} sub
   * @param {string} path
   */
  const note = (command, sub, path) => {
    const name = command.toLowerCase();
    uses.set(CONTAINERS.has(name) ? `${name}|${String(sub).toLowerCase()}` : name, path);
  };
  const scripts = new Set(modules.flatMap(({ path }) => withIncluded(root, there, path.replace(/\.ts$/, ".lua"))));
  for (const path of scripts) {
    const text = readFileSync(join(root, path), "utf8");
    for (const [, given = "", sub] of text.matchAll(/redis\.p?call\(([^,)]*)(?:,\s*'(\w+)')?/g)) {
      const names = [...given.matchAll(/'([A-Z]{3,})'/g)];
      if (names.length === 0) note(`a command that its call does not name (${given})`, sub, path);
      for (const [, name = ""] of names) note(name, sub, path);
    }
  }
  for (const { path, program, text } of modules) {
    if (path.startsWith("shared/nats/")) continue;
    walk(program, (node) => {
      if (node.type === "ArrayExpression") {
        // A call as `transaction.ts` sends it. Lists of words have nothing but words.
        const [first] = node.elements;
        const isCall = node.elements.some((/** @type {any} */ one) => one?.type !== "Literal");
        if (isCall && /^[A-Z_]+$/.test(first?.value) && commands.has(first.value.toLowerCase())) {
          note(first.value, node.elements[1]?.value, path);
        }
      }
      if (node.type !== "CallExpression" || node.callee.type !== "MemberExpression") return;
      const { object, property } = node.callee;
      if (!CLIENT.test(text.slice(object.start, object.end))) return;
      const method = String(property.name).replace(/Buffer$/, "");
      const [first, second] = node.arguments;
      if (method !== "call") return void (commands.has(method) && note(method, first?.value, path));
      if (first?.type === "Literal") note(String(first.value), second?.value ?? second?.elements?.[0]?.value, path);
    });
  }
  const bullMq = withBullMq && existsSync(join(root, BULLMQ)) ? readdirSync(join(root, BULLMQ)) : [];
  for (const file of bullMq.filter((name) => !name.startsWith("relay"))) {
    const text = readFileSync(join(root, BULLMQ, file), "utf8");
    for (const [, name = ""] of text.matchAll(/(?:rcall|redis\.p?call)\(\s*['"](\w+)/g)) note(name, "", BULLMQ);
  }
  return uses;
}

/**
 * @param {string} root
 * @param {Set<string>} there
 * @param {string} path of a script, which may not exist
 * @returns {string[]} the script and the pieces that it includes
 */
function withIncluded(root, there, path) {
  if (!there.has(path)) return [];
  const text = readFileSync(join(root, path), "utf8");
  const pieces = [...text.matchAll(/^-- include (\S+)$/gm)].map(([, piece = ""]) => piece);
  return [path, ...pieces.flatMap((piece) => withIncluded(root, there, posix.join(posix.dirname(path), piece)))];
}

/**
 * @param {string} root
 * @param {Module[]} modules
 * @param {boolean} isJobs
 * @returns {Uses} subjects, with a star for each token that the code fills in
 */
function subjectsOf(root, modules, isJobs) {
  /** @type {Uses} */
  const uses = new Map();
  const named = subjectMakers(root);
  for (const { path, program, text, imports } of modules) {
    if ([SUBJECTS, NATS_LIST, ...UNUSED, ...(isJobs ? UNUSED_BY_JOBS : [])].includes(path)) continue;
    const usesJetStream = [path, ...imports].some((one) => one.startsWith("shared/nats/"));
    walk(program, (node) => {
      const subject = textOf(node);
      if (subject !== undefined && /^\$(?:JS|O)\./.test(subject)) uses.set(subject, path);
      if (node.type === "Identifier") for (const one of named.get(node.name) ?? []) uses.set(one, path);
      if (node.type !== "CallExpression" || !usesJetStream) return;
      const [call = ""] =
        /(?<![#\w])(?:streams|consumers)\.\w+$/.exec(text.slice(node.callee.start, node.callee.end)) ?? [];
      const asked = JETSTREAM.get(call);
      if (asked !== undefined) uses.set(asked, path);
    });
  }
  return uses;
}

/**
 * The subjects that `keys.ts` makes, by the names of its functions and constants.
 *
 * @param {string} root
 * @returns {Map<string, string[]>}
 */
function subjectMakers(root) {
  const { program } = readModule(root, SUBJECTS);
  const makers = new Map();
  for (const { type, declaration } of program.body) {
    if (type !== "ExportNamedDeclaration" || declaration === null) continue;
    const name = (declaration.id ?? declaration.declarations?.[0]?.id)?.name;
    /** @type {string[]} */
    const subjects = [];
    walk(declaration, (node) => {
      const subject = textOf(node);
      if (subject?.startsWith("baton.")) subjects.push(subject);
    });
    makers.set(name, subjects);
  }
  return makers;
}

/**
 * @param {any} node
 * @returns {string | undefined} the text of a literal, with a star for each part to fill in
 */
function textOf(node) {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type !== "TemplateLiteral") return undefined;
  return node.quasis.map((/** @type {any} */ { value }) => value.cooked).join("*");
}

/**
 * @param {string} pattern
 * @param {string} subject
 */
function covers(pattern, subject) {
  const [wanted, given] = [pattern.split("."), subject.split(".")];
  const open = wanted.at(-1) === ">";
  if (open ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((token, i) => token === "*" || token === given[i] || (token === ">" && open));
}

/** @param {string} text */
function wordsOf(text) {
  return text.split(/\s+/).filter((word) => word !== "");
}
