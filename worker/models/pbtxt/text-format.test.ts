import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import { message, type Message } from "./message.js";
import { modelConfig } from "./schema.js";
import { MAX_CONFIG_BYTES, parseTextFormat } from "./text-format.js";

const parse = (text: string): ModelConfig => parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");
const dims = (text: string): readonly number[] | undefined => parse(text).input[0]?.dims;
const names = (text: string): string[] => parse(text).input.map(({ name }) => name);
const utilization = (text: string): number | undefined =>
  parse(`sequence_batching { direct { minimum_slot_utilization: ${text} } }`).sequence_batching?.direct
    ?.minimum_slot_utilization;
const buckets = (text: string): readonly number[] | undefined =>
  parse(`model_metrics { metric_control { histogram_options { buckets: ${text} } } }`).model_metrics?.metric_control[0]
    ?.histogram_options?.buckets;
const state = (text: string) => parse(`sequence_batching { state { ${text} } }`).sequence_batching?.state[0];
const initial = (text: string) => state(`initial_state { ${text} }`)?.initial_state[0];

describe("parseTextFormat accepts", () => {
  it.each<[what: string, read: unknown, value: unknown]>([
    ["an empty file", parse("").max_batch_size, 0],
    ["a byte order mark", parse("\ufeffname: 'a'").name, "a"],
    ["every white space", parse("\t\v\f\r\n name\t:\v'a'").name, "a"],
    ["comments between tokens", parse("# a\nname # b\n: # c\n'x' # d").name, "x"],
    ["a comment that is not UTF-8", parseTextFormat(modelConfig, Buffer.from([0x23, 0xff, 0xfe]), "f").name, ""],
    ["several fields on one line", parse("name: 'a' max_batch_size: 2").max_batch_size, 2],
    ["a comma after a field", parse("name: 'a', max_batch_size: 2").max_batch_size, 2],
    ["a semicolon after a field", parse("name: 'a'; max_batch_size: 2;").max_batch_size, 2],
    ["a scalar list", dims("input { dims: [ 1, -1, 3 ] }"), [1, -1, 3]],
    ["an empty scalar list", dims("input { dims: [] }"), []],
    ["repeated scalars mixed with lists", dims("input { dims: 1 dims: [2, 3] dims: 4 }"), [1, 2, 3, 4]],
    ["a message", names("input { name: 'a' }"), ["a"]],
    ["a message with a colon", names("input: { name: 'a' }"), ["a"]],
    ["a message in angle brackets", names("input < name: 'a' >"), ["a"]],
    ["a message list", names("input [ { name: 'a' }, < name: 'b' > ]"), ["a", "b"]],
    ["a message list with a colon", names("input: [ { name: 'a' } ]"), ["a"]],
    ["an empty message list", names("input []"), []],
    [
      "messages repeated and listed",
      names("input { name: 'a' } input [ { name: 'b' }, { name: 'c' } ]"),
      ["a", "b", "c"],
    ],
    ["a scalar given again after its zero value", parse("max_batch_size: 0 max_batch_size: 3").max_batch_size, 3],
    ["a map as repeated entries", parse("metric_tags { key: 'a' value: 'b' }").metric_tags, { a: "b" }],
    [
      "a map as a list",
      parse("metric_tags: [ { key: 'a' value: 'b' }, { value: 'd' key: 'c' } ]").metric_tags,
      { a: "b", c: "d" },
    ],
    [
      "a map's later key",
      parse("metric_tags [ { key: 'a' value: 'b' }, { key: 'a' value: 'c' } ]").metric_tags,
      { a: "c" },
    ],
    ["a map entry without a value", parse("parameters { key: 'a' }").parameters, { a: { string_value: "" } }],
    ["a map entry without a key", parse("metric_tags { value: 'b' }").metric_tags, { "": "b" }],
    [
      "a map of messages",
      parse("parameters { key: 'a' value: { string_value: 'b' } }").parameters,
      { a: { string_value: "b" } },
    ],
    [
      "__proto__ as a key like any other",
      Object.keys(parse("metric_tags { key: '__proto__' }").metric_tags),
      ["__proto__"],
    ],
    ["both quotes", parse(`name: "it's"`).name + parse(`name: '"'`).name, `it's"`],
    ["adjacent literals", parse(`name: "a" 'b' # c\n "d"`).name, "abd"],
    ["simple escapes", parse(String.raw`name: "\a\b\f\n\r\t\v\?\\\'\""`).name, "\x07\b\f\n\r\t\v?\\'\""],
    ["octal escapes", parse(String.raw`name: "\7\101\1012"`).name, "\x07AA2"],
    ["hex escapes", parse(String.raw`name: "\x41\xa\xc3\xa9"`).name, "A\né"],
    ["short unicode escapes", parse(String.raw`name: "\u00e9\ud83d\ude00"`).name, "é😀"],
    ["long unicode escapes", parse(String.raw`name: "\U0001F600"`).name, "😀"],
    ["raw UTF-8", parse("name: 'é😀'").name, "é😀"],
    ["hex integers", parse("max_batch_size: 0x1F").max_batch_size, 31],
    ["octal integers", parse("max_batch_size: 017").max_batch_size, 15],
    ["a minus apart from its number", dims("input { dims: - # one\n 1 }"), [-1]],
    ["the least int32", parse("max_batch_size: -2147483648").max_batch_size, -(2 ** 31)],
    ["a negative zero for a signed field", dims("input { dims: -0 }"), [0]],
    [
      "the greatest uint64, exactly",
      parse("sequence_batching { max_sequence_idle_microseconds: 18446744073709551615 }").sequence_batching
        ?.max_sequence_idle_microseconds,
      18446744073709551615n,
    ],
    ["floats", buckets("[1, 1., .5, 1e3, 1E-3, 1.0f, 10f, 10F, -2.5]"), [1, 1, 0.5, 1000, 0.001, 1, 10, 10, -2.5]],
    ["infinities and nan, in any case", buckets("[inf, -INF, Infinity, NaN]"), [Infinity, -Infinity, Infinity, NaN]],
    ["a float that prints as it was written", utilization("0.1"), 0.1],
    ["a float at its own precision", utilization("0.12345678901"), 0.12345679],
    ...["true", "True", "t", "1", "0x1", "01"].map((text): [string, unknown, unknown] => [
      `${text} as true`,
      state(`use_growable_memory: ${text}`)?.use_growable_memory,
      true,
    ]),
    ...["false", "False", "f", "0"].map((text): [string, unknown, unknown] => [
      `${text} as false`,
      state(`use_growable_memory: ${text}`)?.use_growable_memory,
      false,
    ]),
    ["an enum by name", state("data_type: TYPE_FP32")?.data_type, "TYPE_FP32"],
    ["an enum by number", state("data_type: 0xB")?.data_type, "TYPE_FP32"],
    ["a oneof member whose value is zero", initial("zero_data: false")?.zero_data, false],
    ["a oneof with nothing given", initial("name: 'a'"), { data_type: "TYPE_INVALID", dims: [], name: "a" }],
  ])("%s", (_, read, value) => {
    expect(read).toEqual(value);
  });

  it("little, and fills in the rest", () => {
    expect(parse("dynamic_batching { } response_cache { enable: true }")).toStrictEqual({
      name: "",
      platform: "",
      backend: "",
      runtime: "",
      max_batch_size: 0,
      input: [],
      output: [],
      batch_input: [],
      batch_output: [],
      dynamic_batching: {
        preferred_batch_size: [],
        max_queue_delay_microseconds: 0,
        preserve_ordering: false,
        priority_levels: 0,
        default_priority_level: 0,
        priority_queue_policy: {},
      },
      instance_group: [],
      default_model_filename: "",
      cc_model_filenames: {},
      metric_tags: {},
      parameters: {},
      model_warmup: [],
      response_cache: { enable: true },
    });
  });
});

describe("parseTextFormat refuses", () => {
  const inMax = 'in field "max_batch_size"';
  const inName = 'in field "name"';
  it.each<[text: string, error: string]>([
    ["\n  no_such: 1", '2:3: Message type "inference.ModelConfig" has no field named "no_such".'],
    ["maxBatchSize: 1", '1:1: Message type "inference.ModelConfig" has no field named "maxBatchSize".'],
    ["Name: 'a'", '1:1: Message type "inference.ModelConfig" has no field named "Name".'],
    [
      "sequence_batching {\n    state2 { }\n}",
      '2:5: Message type "inference.ModelSequenceBatching" has no field named "state2".',
    ],
    [
      "parameters { key: 'a' val: 'b' }",
      '1:23: Message type "inference.ModelConfig.ParametersEntry" has no field named "val".',
    ],
    ["max_batch_size 1", `1:16: Expected ":", found "1" (${inMax}).`],
    ["input { dims [1] }", '1:14: Expected ":", found "[" (in field "input.dims").'],
    ["input: 1", '1:8: Expected "{", found "1" (in field "input").'],
    ["input { dims: [1 2] }", '1:18: Expected ",", found "2" (in field "input.dims").'],
    ["input { dims: [1, 2,] }", '1:21: Expected integer, got: ] (in field "input.dims").'],
    ["input [ { }, ]", '1:14: Expected "{", found "]" (in field "input").'],
    ["input [ { } { } ]", '1:13: Expected ",", found "{" (in field "input").'],
    ["input [ [ { } ] ]", '1:9: Expected "{", found "[" (in field "input").'],
    ["max_batch_size: [1]", `1:17: Expected integer, got: [ (${inMax}).`],
    ["dynamic_batching [ { } ]", '1:18: Expected "{", found "[" (in field "dynamic_batching").'],
    ["name: 'a',, max_batch_size: 1", "1:11: Expected identifier, got: ,."],
    ["name: 'a';, max_batch_size: 1", "1:11: Expected identifier, got: ,."],
    ["[pkg.ext]: 1", "1:1: Expected identifier, got: [."],
    ["}", "1:1: Expected identifier, got: }."],
    ["input {", '1:8: Expected identifier, got:  (in field "input").'],
    ["input { >", '1:9: Expected "}", found ">" (in field "input").'],
    ["name: 'a' name: 'b'", '1:11: Non-repeated field "name" is specified multiple times.'],
    ["max_batch_size: 1 max_batch_size: 0", '1:19: Non-repeated field "max_batch_size" is specified multiple times.'],
    [
      "dynamic_batching {} dynamic_batching {}",
      '1:21: Non-repeated field "dynamic_batching" is specified multiple times.',
    ],
    [
      "sequence_batching { } dynamic_batching { }",
      '1:23: Field "dynamic_batching" is specified along with field "sequence_batching", another member of oneof "scheduling_choice".',
    ],
    [
      "sequence_batching { direct { } oldest { } }",
      '1:32: Field "oldest" is specified along with field "direct", another member of oneof "strategy_choice".',
    ],
    [
      "sequence_batching { state { initial_state { zero_data: false data_file: '' } } }",
      '1:62: Field "data_file" is specified along with field "zero_data", another member of oneof "state_data".',
    ],
    [
      "version_policy { latest { } all { } }",
      '1:29: Field "all" is specified along with field "latest", another member of oneof "policy_choice".',
    ],
    ["name: a", `1:7: Expected string, got: a (${inName}).`],
    ["name: 'a\nb'", "1:9: String literals cannot cross line boundaries."],
    ["name: 'a", "1:9: Unexpected end of string."],
    [String.raw`name: "\q"`, "1:8: Invalid escape sequence in string literal."],
    [String.raw`name: "\x"`, "1:8: Invalid escape sequence in string literal."],
    [String.raw`name: "\u12"`, "1:8: Invalid escape sequence in string literal."],
    [String.raw`name: "\U00110000"`, "1:8: Invalid escape sequence in string literal."],
    [String.raw`name: "\ud83d"`, "1:8: Unpaired surrogate in string literal."],
    [String.raw`name: "\ude00\ud83d"`, "1:8: Unpaired surrogate in string literal."],
    [String.raw`name: "\400"`, "1:8: Octal escape sequence is larger than a byte."],
    [String.raw`name: "\xff"`, `1:7: String contains invalid UTF-8 data (${inName}).`],
    ["max_batch_size: 2147483648", `1:17: Integer out of range (2147483648) (${inMax}).`],
    ["max_batch_size: -2147483649", `1:17: Integer out of range (2147483649) (${inMax}).`],
    ["max_batch_size: 9223372036854775808", `1:17: Integer out of range (9223372036854775808) (${inMax}).`],
    [`max_batch_size: ${"9".repeat(99)}`, `1:17: Integer out of range (${"9".repeat(64)}…) (${inMax}).`],
    ["max_batch_size: 1.5", `1:17: Expected integer, got: 1.5 (${inMax}).`],
    ["max_batch_size: +1", `1:17: Expected integer, got: + (${inMax}).`],
    ["max_batch_size: - -1", `1:19: Expected integer, got: - (${inMax}).`],
    ["max_batch_size: 10bar", "1:19: Need space between number and identifier."],
    ["max_batch_size: 0x", '1:17: "0x" must be followed by hex digits.'],
    ["max_batch_size: 08", "1:18: Numbers starting with leading zero must be in octal."],
    ["max_batch_size: 0x1.5", "1:20: Hex and octal numbers must be integers."],
    ["input { dims: 9007199254740993 }", '1:15: Integer out of range (9007199254740993) (in field "input.dims").'],
    [
      "version_policy { latest { num_versions: -0 } }",
      '1:41: Expected integer, got: - (in field "version_policy.latest.num_versions").',
    ],
    [
      "version_policy { latest { num_versions: 4294967296 } }",
      '1:41: Integer out of range (4294967296) (in field "version_policy.latest.num_versions").',
    ],
    [
      "sequence_batching { max_sequence_idle_microseconds: 18446744073709551616 }",
      '1:53: Integer out of range (18446744073709551616) (in field "sequence_batching.max_sequence_idle_microseconds").',
    ],
    [
      "sequence_batching { direct { minimum_slot_utilization: 0x1 } }",
      '1:56: Expect a decimal number, got: 0x1 (in field "sequence_batching.direct.minimum_slot_utilization").',
    ],
    [
      "sequence_batching { direct { minimum_slot_utilization: 01 } }",
      '1:56: Expect a decimal number, got: 01 (in field "sequence_batching.direct.minimum_slot_utilization").',
    ],
    [
      "sequence_batching { direct { minimum_slot_utilization: half } }",
      '1:56: Expected double, got: half (in field "sequence_batching.direct.minimum_slot_utilization").',
    ],
    [
      "sequence_batching { direct { minimum_slot_utilization: 1.2.3 } }",
      "1:59: Already saw decimal point or exponent; can't have another one.",
    ],
    ["sequence_batching { direct { minimum_slot_utilization: 1e } }", '1:57: "e" must be followed by exponent.'],
    [
      "response_cache { enable: TRUE }",
      '1:26: Invalid value for boolean field. Value: "TRUE" (in field "response_cache.enable").',
    ],
    ["response_cache { enable: 2 }", '1:26: Integer out of range (2) (in field "response_cache.enable").'],
    ["response_cache { enable: 'true' }", `1:26: Expected identifier, got: 'true' (in field "response_cache.enable").`],
    ["input { data_type: FP32 }", '1:20: Unknown enumeration value of "FP32" (in field "input.data_type").'],
    ["input { data_type: type_fp32 }", '1:20: Unknown enumeration value of "type_fp32" (in field "input.data_type").'],
    ["input { data_type: 99 }", '1:20: Unknown enumeration value of "99" (in field "input.data_type").'],
    [
      "input { data_type: 'TYPE_FP32' }",
      `1:20: Expected integer or identifier, got: 'TYPE_FP32' (in field "input.data_type").`,
    ],
    ["name: 'a' \u0001", "1:11: Invalid control or non-ascii character in text."],
    ["näme: 'a'", "1:2: Invalid control or non-ascii character in text."],
  ])("%j", (text, error) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ name: "LoadError", message: `config.pbtxt:${error}` }));
  });

  it("a file above its limit, unread", () => {
    expect(() => parse(" ".repeat(MAX_CONFIG_BYTES + 1))).toThrow(
      "config.pbtxt: is larger than 1048576 bytes (1048577)",
    );
  });

  it("messages nested deeper than 100", () => {
    interface Nest {
      readonly next?: Nest;
    }
    let nest: Message<Nest> = message<Nest>("Nest", { next: message<Nest>("Leaf", {} as { next: Message<Nest> }) });
    for (let depth = 0; depth < 101; depth += 1) nest = message<Nest>("Nest", { next: nest });
    const text = (depth: number): Buffer => Buffer.from("next {".repeat(depth) + "}".repeat(depth));
    expect(() => parseTextFormat(nest, text(100), "f")).not.toThrow();
    expect(() => parseTextFormat(nest, text(101), "f")).toThrow("exceeded the configured recursion limit of 100");
  });

  it.each([
    "# \n".repeat(340_000),
    `name: ${'"a"'.repeat(340_000)}`,
    `name: "${String.raw`\n`.repeat(500_000)}"`,
    `input { dims: [${"1,".repeat(500_000)}1] }`,
    "input {} ".repeat(110_000),
    `max_batch_size: ${"9".repeat(1_000_000)}`,
    `max_batch_size: 0x${"f".repeat(1_000_000)}`,
    "input < ".repeat(130_000),
  ])("or reads a megabyte in bounded time: %#", (text) => {
    const before = process.cpuUsage().user;
    try {
      parse(text);
    } catch {
      // This test measures only the time, so the parser may refuse the text.
    }
    expect(process.cpuUsage().user - before).toBeLessThan(10_000_000);
  });
});
