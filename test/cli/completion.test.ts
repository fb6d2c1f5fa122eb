import { spawnSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { baton } from "./baton.js";

const scripts = new Map<string, string>();
beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await baton(["completion", shell]);
    expect(code).toBe(0);
    scripts.set(shell, stdout);
  }
});

function run(shell: string, args: readonly string[], script: string): string {
  const { status, stdout, stderr } = spawnSync(shell, [...args], { input: script, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

const isThere = (shell: string) => spawnSync(shell, ["-c", "true"]).status === 0;

/** The words before the cursor, with the begun word last, and all words that fit there. */
const cases: [string[], string[]][] = [
  [["seq"], ["sequences"]],
  [
    ["sequences", ""],
    ["list", "show", "fork", "rewind", "end", "export", "import"],
  ],
  [["sequences", "re"], ["rewind"]],
  [["--url", "http://localhost:8000", "sequences", "--json", "f"], ["fork"]],
  [
    ["sequences", "fork", "--st"],
    ["--string", "--step"],
  ],
  [["generate", "--max"], ["--max-tokens"]],
  [
    ["completion", ""],
    ["bash", "zsh", "fish"],
  ],
  [["fleet", "--w"], ["--watch"]],
];

describe("completion in bash", () => {
  it("is a script without a fault", () => {
    run("bash", ["-n"], scripts.get("bash") ?? "");
  });

  it.each(cases)("after %j offers %j", (words, offered) => {
    const line = ["baton", ...words].map((word) => `'${word}'`).join(" ");
    const asked = `COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _baton; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const said = run("bash", ["--norc"], `${scripts.get("bash")}\n${asked}\n`);
    expect(said.trim().split("\n").sort()).toEqual([...offered].sort());
  });

  it("is bound to the command", () => {
    expect(run("bash", ["--norc"], `${scripts.get("bash")}\ncomplete -p baton\n`)).toContain("-F _baton baton");
  });
});

describe.skipIf(!isThere("zsh"))("completion in zsh", () => {
  it("is a script without a fault", () => {
    run("zsh", ["-n"], scripts.get("zsh") ?? "");
  });

  it.each(cases)("after %j offers %j", (words, offered) => {
    // zsh calls `compadd` to offer words; here `compadd` prints the fitting words instead.
    const line = ["baton", ...words].map((word) => `'${word}'`).join(" ");
    const asked = `words=(${line}); CURRENT=${words.length + 1}; _baton`;
    const shim = "compdef() { :; }; _files() { :; }; compadd() { shift; print -l -- ${(M)@:#$words[CURRENT]*}; }";
    const said = run("zsh", ["-f"], `${shim}\n${scripts.get("zsh")}\n${asked}\n`);
    expect(said.trim().split("\n").sort()).toEqual([...offered].sort());
  });
});

describe.skipIf(!isThere("fish"))("completion in fish", () => {
  it.each(cases)("after %j offers %j", (words, offered) => {
    const line = ["baton", ...words].join(" ");
    // Fish cannot read a script from the kind of pipe that node makes.
    const said = run("fish", ["--no-config", "-c", `${scripts.get("fish")}\ncomplete -C '${line}'`], "");
    const found = said.trim().split("\n");
    expect(found.map((one) => one.replace(/\t.*/, "")).sort()).toEqual([...offered].sort());
  });
});
