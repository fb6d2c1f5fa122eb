import { link, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  chooseVersions,
  isModelName,
  scanRepository,
  versionNumbers,
  type FoundModel,
  type ScannedModel,
} from "./scan.js";

let root: string;
let repository: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "baton-scan-"));
  repository = join(root, "models");
  await mkdir(repository);
});

afterEach(async () => {
  await rm(root, { recursive: true });
});

/** Files by path in the repository; a path that ends in `/` is a directory. */
async function given(files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const full = join(repository, path);
    await mkdir(path.endsWith("/") ? full : dirname(full), { recursive: true });
    if (!path.endsWith("/")) await writeFile(full, content);
  }
}

async function scanOne(): Promise<ScannedModel> {
  const [model, ...others] = await scanRepository(repository);
  expect(others).toEqual([]);
  if (model === undefined) throw new Error("no model found");
  return model;
}

async function found(): Promise<FoundModel> {
  const model = await scanOne();
  if (model.kind === "broken") throw new Error(model.error);
  if (model.kind !== "found") throw new Error(`a model of the kind ${model.kind} was found`);
  return model;
}

async function broken(): Promise<string> {
  const model = await scanOne();
  return model.kind === "broken" ? model.error : "nothing is wrong with it";
}

/** The versions, and the files for cards if a version has any. */
const fileOf = (model: FoundModel): unknown =>
  model.versions.map((version) => {
    if (!("cardFiles" in version)) return version;
    const { cardFiles, ...rest } = version;
    return cardFiles.size === 0 ? rest : { ...rest, cardFiles: Object.fromEntries(cardFiles) };
  });

describe("scanRepository", () => {
  it("finds a model without a configuration", async () => {
    await given({ "m/1/model.onnx": "x" });
    const model = await found();
    expect([model.name, model.config.name, model.config.backend]).toEqual(["m", "m", "onnxruntime"]);
    expect(fileOf(model)).toEqual([{ version: "1", file: join(repository, "m/1/model.onnx") }]);
    expect(model.facts).toEqual({ directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] });
  });

  it("lets a bad model hurt no other", async () => {
    await given({
      "a/1/model.onnx": "x",
      "b/config.pbtxt": "name: 'b'\nno_such_field: 1\n",
      "b/1/model.onnx": "x",
      "c/1/model.onnx": "x",
      "README.md": "not a model",
      ".git/config": "not a model",
      "..data/1/model.onnx": "not a model",
    });
    expect((await scanRepository(repository)).map(({ kind, name }) => `${name} ${kind}`)).toEqual([
      "a found",
      "b broken",
      "c found",
    ]);
  });

  it.each<[what: string, files: Readonly<Record<string, string | Uint8Array>>, error: string]>([
    [
      "an unknown field",
      { "m/config.pbtxt": "name: 'm'\n  no_such_field: 1" },
      'config.pbtxt:2:3: Message type "inference.ModelConfig" has no field named "no_such_field".',
    ],
    [
      "another name",
      { "m/config.pbtxt": "name: 'n'", "m/1/model.onnx": "" },
      "unexpected directory name 'm' for model 'n', directory name must equal model name",
    ],
    [
      "no version",
      { "m/config.pbtxt": "backend: 'onnxruntime'", "m/01/model.onnx": "" },
      "at least one version must be available under the version policy of model 'm'",
    ],
    [
      "no version that the policy wants",
      { "m/config.pbtxt": "version_policy { specific { versions: 2 } }", "m/1/model.onnx": "" },
      "at least one version must be available under the version policy of model 'm'",
    ],
    [
      "an invalid configuration",
      { "m/config.pbtxt": "max_batch_size: -1", "m/1/model.onnx": "" },
      "'max_batch_size' must be non-negative value for m",
    ],
    ["an unknown kind of model", { "m/1/model.py": "" }, "must specify 'platform' or 'backend' for 'm'"],
    [
      "a large configuration",
      { "m/config.pbtxt": new Uint8Array((1 << 20) + 1), "m/1/model.onnx": "" },
      "'config.pbtxt' is larger than 1048576 bytes (1048577)",
    ],
    ["a directory for a configuration", { "m/config.pbtxt/": "" }, "'config.pbtxt' is not a regular file"],
    [
      "a name with a space",
      { "a model/1/model.onnx": "" },
      "a model's name is 1 to 128 letters, digits, '.', '_' or '-', without '..'",
    ],
    [
      "a name with two dots",
      { "a..b/1/model.onnx": "" },
      "a model's name is 1 to 128 letters, digits, '.', '_' or '-', without '..'",
    ],
  ])("refuses a model with %s", async (_, files, error) => {
    await given(files);
    expect(await broken()).toBe(error);
  });

  it("serves the versions that the policy chooses, by number", async () => {
    await given({
      "m/config.pbtxt": "version_policy { latest { num_versions: 2 } }",
      "m/2/model.onnx": "",
      "m/9/model.onnx": "",
      "m/10/model.onnx": "",
      "m/warmup/x": "",
    });
    expect((await found()).versions.map(({ version }) => version)).toEqual(["9", "10"]);
  });

  it("finds the files for cards that are there", async () => {
    const named = ["8.0", "9.0"].map((card) => `cc_model_filenames { key: "${card}" value: "of-${card}.onnx" }`);
    await given({ "m/config.pbtxt": named.join(" "), "m/1/model.onnx": "", "m/1/of-9.0.onnx": "" });
    const file = (name: string): string => join(repository, "m/1", name);
    expect(fileOf(await found())).toEqual([
      { version: "1", file: file("model.onnx"), cardFiles: { "9.0": file("of-9.0.onnx") } },
    ]);
  });

  it("takes the file that default_model_filename names", async () => {
    const text = "backend: 'onnxruntime' default_model_filename: 'own.onnx'";
    await given({ "m/config.pbtxt": text, "m/1/model.onnx": "", "m/1/own.onnx": "" });
    expect(fileOf(await found())).toEqual([{ version: "1", file: join(repository, "m/1/own.onnx") }]);
  });

  it("fails a version whose file is missing, alone", async () => {
    await given({ "m/config.pbtxt": "version_policy { all { } }", "m/1/model.onnx": "", "m/2/": "" });
    expect(fileOf(await found())).toEqual([
      { version: "1", file: join(repository, "m/1/model.onnx") },
      { version: "2", error: "'2/model.onnx' does not exist" },
    ]);
  });

  it("finds the file inside a model that is a directory", async () => {
    await given({ "m/1/model.onnx/model.onnx": "", "m/1/model.onnx/weights.bin": "" });
    expect(fileOf(await found())).toEqual([{ version: "1", file: join(repository, "m/1/model.onnx/model.onnx") }]);
  });
});

describe("scanRepository finds generators", () => {
  const folder = {
    "g/config.json": JSON.stringify({ n_positions: 64, vocab_size: 3, eos_token_id: 0 }),
    "g/tokenizer.json": JSON.stringify({ model: { type: "BPE", vocab: {}, merges: [] } }),
    "g/onnx/model.onnx": "x",
  };

  it("in a Hugging Face folder", async () => {
    await given(folder);
    expect(await scanOne()).toMatchObject({ kind: "generator", name: "g", directory: join(repository, "g"), eos: [0] });
  });

  it("and says what is missing in one", async () => {
    await given({ "g/config.json": folder["g/config.json"], "g/onnx/model.onnx": "x" });
    expect(await broken()).toBe("'tokenizer.json' does not exist");
  });

  it("but not where there is a version", async () => {
    await given({ ...folder, "g/1/model.onnx": "" });
    expect((await scanOne()).kind).not.toBe("generator");
  });

  it("with a config.pbtxt, which may name the two tensors", async () => {
    await given({ ...folder, "g/config.pbtxt": "" });
    expect(await scanOne()).toMatchObject({ kind: "generator", tensors: undefined, warnings: [] });
    const tensor = (name: string) => `{ name: '${name}' data_type: TYPE_STRING dims: [ 1, 1 ] }`;
    const text = `name: 'g' input ${tensor("TEXT")} output ${tensor("STORY")} instance_group { kind: KIND_CPU gpus: 0 count: 1 }`;
    await given({
      "g/config.pbtxt": `${text} platform: 'tensorflow_savedmodel' dynamic_batching { default_batch_size: 4 }`,
    });
    expect(await scanOne()).toMatchObject({
      kind: "generator",
      tensors: { maxBatchSize: 4, input: { name: "TEXT", dims: [1, 1] }, output: { name: "STORY", dims: [1, 1] } },
      warnings: [
        "instance_group[0].gpus has no effect: its kind is KIND_CPU",
        "dynamic_batching.default_batch_size is read as dynamic_batching.preferred_batch_size",
        expect.stringMatching(/^platform has no effect: Baton's own engine/) as unknown,
        expect.stringMatching(/^max_batch_size has no effect: /) as unknown,
        expect.stringMatching(/^dynamic_batching has no effect: /) as unknown,
      ],
    });
  });

  it.each<[text: string, gpus: number[], place: unknown]>([
    ["", [0], undefined],
    ["instance_group { kind: KIND_CPU gpus: 0 }", [0], { kind: "KIND_CPU", gpus: [], needsGpu: false }],
    ["instance_group { kind: KIND_GPU }", [0, 1], { kind: "KIND_GPU", gpus: [0, 1], needsGpu: true }],
    ["instance_group { kind: KIND_GPU gpus: 1 }", [0, 1], { kind: "KIND_GPU", gpus: [1], needsGpu: true }],
    ["instance_group { gpus: 1 }", [0, 1], { kind: "KIND_GPU", gpus: [1], needsGpu: false }],
    ["instance_group { }", [], { kind: "KIND_CPU", gpus: [], needsGpu: false }],
  ])("which with %j and the GPUs %j are wanted at %j", async (text, gpus, place) => {
    await given({ ...folder, "g/config.pbtxt": text });
    const [model] = await scanRepository(repository, gpus);
    expect(model).toMatchObject({ kind: "generator", place });
  });

  const input = "input { name: 'A' data_type: TYPE_STRING dims: 1 }";
  it.each([
    [input, "a generator has one input and one output, both TYPE_STRING, but 1 and 0 are given: write input {"],
    [`${input} ${input} ${input.replace("input", "output")}`, "a generator has one input and one output"],
    [
      `${input.replace("STRING", "INT32")} ${input.replace("input", "output")}`,
      "input 'A' of a generator must have data_type TYPE_STRING, not TYPE_INT32",
    ],
    [
      `${input} output { name: 'B' data_type: TYPE_STRING dims: [ 1, 2 ] }`,
      "output 'B' of a generator has one text: its dims must be 1, or -1",
    ],
    [
      `input { data_type: TYPE_STRING } ${input.replace("input", "output")}`,
      "the input of a generator must have a name",
    ],
    ["name: 'h'", "unexpected directory name 'g' for model 'h', directory name must equal model name"],
    ["max_batch_size: -1", "'max_batch_size' must be a non-negative value"],
    ["sequence_batching { }", "sequence_batching is not supported: a conversation is a sequence of any generator"],
    ["instance_group { kind: KIND_GPU }", "instance group g_0 of model g has kind KIND_GPU but no GPUs are available"],
    [
      "instance_group { kind: KIND_MODEL gpus: 1 }",
      "instance group g_0 of model g has kind KIND_MODEL but specifies one or more GPUs",
    ],
    [
      "instance_group { } instance_group { profile: 'p' }",
      "instance group g_1 of model g and platform onnxruntime_onnx specifies profile field",
    ],
    ["inputs { }", 'config.pbtxt:1:1: Message type "inference.ModelConfig" has no field named "inputs".'],
  ])("and refuses the config.pbtxt %j", async (text, error) => {
    await given({ ...folder, "g/config.pbtxt": text });
    expect(await broken()).toContain(error);
  });
});

describe("scanRepository follows no path out of a model", () => {
  it("refuses a hard-linked model file", async () => {
    await given({ "m/1/": "" });
    await writeFile(join(root, "secret"), "x");
    await link(join(root, "secret"), join(repository, "m/1/model.onnx"));
    expect(fileOf(await found())).toEqual([
      {
        version: "1",
        error:
          "'1/model.onnx' has 2 hard links: a file with more than one name may be someone else's; copy it instead of linking it",
      },
    ]);
  });

  it("refuses hard-linked external data beside the model", async () => {
    await given({ "m/1/model.onnx": "" });
    await writeFile(join(root, "secret"), "x");
    await mkdir(join(repository, "m/1/data"));
    await link(join(root, "secret"), join(repository, "m/1/data/weights"));
    expect(fileOf(await found())).toMatchObject([
      { error: expect.stringContaining("'1/data/weights' has 2 hard links") },
    ]);
  });

  it("refuses a symbolic link out of the model", async () => {
    await given({ "m/1/": "" });
    await writeFile(join(root, "secret"), "x");
    await symlink(join(root, "secret"), join(repository, "m/1/model.onnx"));
    expect(fileOf(await found())).toMatchObject([{ error: "'1/model.onnx' leads out of the directory it is in" }]);
  });

  it("refuses a configuration that is a link to another model's", async () => {
    await given({ "m/1/model.onnx": "", ".other/config.pbtxt": "" });
    await symlink("../.other/config.pbtxt", join(repository, "m/config.pbtxt"));
    expect(await broken()).toBe("'config.pbtxt' leads out of the directory it is in");
  });

  it("refuses a model directory that is a link out of the repository", async () => {
    await mkdir(join(root, "elsewhere"));
    await symlink(join(root, "elsewhere"), join(repository, "m"));
    expect(await broken()).toBe("model directory 'm' leads out of the repository");
  });

  it("takes links that stay inside", async () => {
    await given({ ".data/m/1/real.onnx": "x" });
    await symlink("real.onnx", join(repository, ".data/m/1/model.onnx"));
    await symlink(".data/m", join(repository, "m"));
    expect(fileOf(await found())).toEqual([{ version: "1", file: join(repository, ".data/m/1/real.onnx") }]);
  });

  it("refuses what is not a file, unopened", async () => {
    await given({ "m/1/model.onnx": "" });
    const socket = createServer();
    await new Promise<void>((listening) => {
      socket.listen(join(repository, "m/config.pbtxt"), listening);
    });
    expect(await broken()).toBe("'config.pbtxt' is not a regular file");
    socket.close();
  });
});

describe("scanRepository reads initial states", () => {
  const config = (type: string, dims: string, data: string): string => `
    sequence_batching { state {
      input_name: 'S' output_name: 'T' data_type: ${type} dims: ${dims}
      initial_state { name: 'i' data_type: ${type} dims: ${dims} ${data} }
    } }`;
  it.each<[what: string, text: string, file: string, read: string | undefined]>([
    ["exactly", config("TYPE_INT16", "[2, 2]", "data_file: 'f'"), "12345678", "12345678"],
    ["as far as needed", config("TYPE_INT16", "[2, 2]", "data_file: 'f'"), "123456789", "12345678"],
    ["whole, for strings", config("TYPE_STRING", "1", "data_file: 'f'"), "\u0001\0\0\0a", "\u0001\0\0\0a"],
    ["not at all, for zeros", config("TYPE_INT16", "2", "zero_data: true"), "1234", undefined],
  ])("%s", async (_, text, file, read) => {
    await given({ "m/config.pbtxt": text, "m/1/model.onnx": "", "m/initial_state/f": file });
    expect((await found()).initialStates.get("S")?.toString()).toBe(read);
  });

  it("refuses a file that is too short", async () => {
    await given({
      "m/config.pbtxt": config("TYPE_FP64", "2", "data_file: 'f'"),
      "m/1/model.onnx": "",
      "m/initial_state/f": "123",
    });
    expect(await broken()).toBe(
      "initial_state setting expects 16 bytes, but the data provided from f only has 3 bytes.",
    );
  });

  it.each([
    ["d\0\0\0", 0, "\0\0\0\0\0\0\0\0"],
    ["", 0, "\0\0\0\0\0\0\0\0"],
    ["\u0001\0\0\0a", 1, "\u0001\0\0\0a\0\0\0\0"],
    ["\u0001\0\0\0a\0", 1, "\u0001\0\0\0a\0\0\0\0"],
    ["\u0001\0\0\0a\u0002\0\0\0b", 1, "\u0001\0\0\0a\0\0\0\0"],
  ])("takes the whole strings of %j, and warns of empty ones in place of the others", async (file, whole, read) => {
    await given({
      "m/config.pbtxt": config("TYPE_STRING", "2", "data_file: 'f'"),
      "m/1/model.onnx": "",
      "m/initial_state/f": file,
    });
    const { initialStates, warnings } = await found();
    expect(initialStates.get("S")?.toString()).toBe(read);
    expect(warnings).toEqual([`initial_state data_file 'f' has ${whole} whole strings of 2: the others begin empty`]);
  });

  const a = "\u0001\0\0\0a";
  it.each([
    [a + a + a, "initial_state setting expects 2 strings, but data_file 'f' has 3"],
    [`${a}${a}\0`, "initial_state setting expects 2 strings, but data_file 'f' has 3"],
    [
      "\u0001\0\0\0a\u0001\0\0\0\0",
      "string 1 of data_file 'f' holds a NUL byte, and ONNX Runtime for Node would drop all that follows it",
    ],
  ])("refuses the strings %j", async (file, reason) => {
    await given({
      "m/config.pbtxt": config("TYPE_STRING", "2", "data_file: 'f'"),
      "m/1/model.onnx": "",
      "m/initial_state/f": file,
    });
    expect(await broken()).toBe(reason);
  });

  it("refuses a file that is missing", async () => {
    await given({ "m/config.pbtxt": config("TYPE_FP64", "2", "data_file: 'f'"), "m/1/model.onnx": "" });
    expect(await broken()).toBe("initial_state data_file 'f' does not exist");
  });
});

it.each([
  ["m", true],
  ["A-b_c.1", true],
  ["a".repeat(128), true],
  ["a".repeat(129), false],
  ["", false],
  [".", false],
  ["a..b", false],
  ["a/b", false],
  ["é", false],
  ["a\n", false],
])("isModelName(%j) is %s", (name, expected) => {
  expect(isModelName(name)).toBe(expected);
});

describe("versions", () => {
  it("are whole numbers without leading zeros, ascending, within int64", () => {
    const names = ["10", "2", "0", "01", "1.0", "-1", "x", "warmup", "9223372036854775807", "9223372036854775808"];
    expect(versionNumbers(names)).toEqual(["0", "2", "10", "9223372036854775807"]);
  });

  it.each([
    [{ latest: { num_versions: 1 } }, ["10"]],
    [{ latest: { num_versions: 9 } }, ["1", "2", "10"]],
    [{ latest: { num_versions: 0 } }, []],
    [{ all: {} }, ["1", "2", "10"]],
    [{}, ["1", "2", "10"]],
    [{ specific: { versions: [10, 1, 7] } }, ["1", "10"]],
  ])("%j chooses %j", (policy, expected) => {
    expect(chooseVersions(policy, ["1", "2", "10"])).toEqual(expected);
  });
});
