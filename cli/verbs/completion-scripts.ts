/** Shell scripts that complete verbs, options and files, made from the program itself. */
import type { Command } from "commander";

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

interface Verb {
  /** The words that lead to the verb, for example `sequences list`; empty for the program. */
  readonly path: string;
  readonly words: readonly Word[];
  readonly options: readonly Word[];
}

interface Word {
  readonly word: string;
  readonly about: string;
  /** Whether a value follows this word. */
  readonly takesValue: boolean;
}

export function completionScript(shell: Shell, program: Command): string {
  const verbs = verbsOf(program);
  switch (shell) {
    case "bash":
      return bash(verbs);
    case "zsh":
      return zsh(verbs);
    case "fish":
      return fish(verbs);
  }
}

function verbsOf(program: Command): Verb[] {
  const general = optionsOf(program);
  const walk = (command: Command, path: readonly string[]): Verb[] => [
    {
      path: path.join(" "),
      words: [
        ...command.commands.map((one) => ({
          word: one.name(),
          about: one.summary() || one.description(),
          takesValue: false,
        })),
        ...command.registeredArguments.flatMap(({ argChoices = [] }) =>
          argChoices.map((word) => ({ word, about: "", takesValue: false })),
        ),
      ],
      options: command === program ? general : [...optionsOf(command), ...general],
    },
    ...command.commands.flatMap((one) => walk(one, [...path, one.name()])),
  ];
  return walk(program, []);
}

function optionsOf(command: Command): Word[] {
  const given = command.options.map(({ long, description, required }) => ({
    word: long ?? "",
    about: description,
    takesValue: required,
  }));
  return [...given, { word: "--help", about: "how to use it", takesValue: false }];
}

/** Quotes for all three shells: each takes text inside single quotes as plain text. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "")}'`;
}

function list(words: readonly Word[]): string {
  return words.map(({ word }) => word).join(" ");
}

/** Options that take the next word as a value. */
function valued(verbs: readonly Verb[]): string[] {
  return [
    ...new Set(verbs.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue).map(({ word }) => word))),
  ];
}

/**
 * The part that bash and zsh share. Follows the verbs before the cursor and sets the possible next
 * words. Words that are no verb count as arguments; options are skipped.
 */
function choose(verbs: readonly Verb[], words: string): string {
  const cases = verbs.map(
    ({ path, words: next, options }) =>
      `    ${quoted(path)}) next=${quoted(list(next))} options=${quoted(list(options))} ;;`,
  );
  const paths = verbs.map(({ path }) => path).filter((path) => path !== "");
  return `  local verb= next= options= skip= word
  for word in ${words}; do
    if [[ -n $skip ]]; then skip=; continue; fi
    case "$word" in
      ${valued(verbs).join("|")}) skip=1; continue ;;
      -*) continue ;;
    esac
    case "\${verb:+$verb }$word" in
      ${paths.map(quoted).join("|")}) verb="\${verb:+$verb }$word" ;;
    esac
  done
  case "$verb" in
${cases.join("\n")}
  esac`;
}

function bash(verbs: readonly Verb[]): string {
  return `# bash completion of baton; in ~/.bashrc: source <(npx baton completion bash)
_baton() {
  local current="\${COMP_WORDS[COMP_CWORD]}"
${choose(verbs, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  COMPREPLY=()
  if [[ -n $skip ]]; then return; fi
  if [[ $current == -* ]]; then next=$options; fi
  COMPREPLY=($(compgen -W "$next" -- "$current"))
}
complete -o default -F _baton baton
`;
}

function zsh(verbs: readonly Verb[]): string {
  return `#compdef baton
# zsh completion of baton; in ~/.zshrc, after compinit: source <(npx baton completion zsh)
_baton() {
  local current="\${words[CURRENT]}"
${choose(verbs, `"\${(@)words[2,CURRENT-1]}"`)}
  if [[ -n $skip ]]; then _files; return; fi
  if [[ $current == -* ]]; then next=$options; fi
  if [[ -n $next ]]; then compadd -- \${=next}; else _files; fi
}
compdef _baton baton
`;
}

function fish(verbs: readonly Verb[]): string {
  const all = verbs.map(({ path }) => path).filter((path) => path !== "");
  const lines = verbs.flatMap(({ path, words, options }) => {
    const condition = `-n ${quoted(`__baton_at ${path === "" ? '""' : `"${path}"`}`)}`;
    return [
      ...words.map(({ word, about }) => `complete -c baton ${condition} -f -a ${quoted(word)} -d ${quoted(about)}`),
      ...options.map(
        ({ word, about, takesValue }) =>
          `complete -c baton ${condition} -l ${word.slice(2)}${takesValue ? " -r" : ""} -d ${quoted(about)}`,
      ),
    ];
  });
  return `# fish completion of baton; in config.fish: npx baton completion fish | source
function __baton_at --description 'whether the verb before the cursor is this one'
  set -l verb
  set -l skip 0
  for word in (commandline -opc)[2..-1]
    if test $skip = 1
      set skip 0
    else if contains -- $word ${valued(verbs).join(" ")}
      set skip 1
    else if contains -- (string join -- ' ' $verb $word) ${all.map(quoted).join(" ")}
      set -a verb $word
    end
  end
  test "$verb" = "$argv[1]"
end
${lines.join("\n")}
`;
}
