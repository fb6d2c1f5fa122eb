/** Turns a client's prompt into the tokens that the model continues. */
import type { PromptSpec } from "#shared/contract/generation.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { AddedTokens, escapeControlTokens } from "./added-tokens.js";
import { ChatTemplate } from "./chat.js";
import { controlTokens, namedTokens } from "./control-tokens.js";
import { Encoder } from "./encoder.js";
import type { EncodeRequest, TokenizerOptions } from "./protocol.js";
import { readTokenizerJson } from "./tokenizer-json.js";

export class PromptEncoder {
  private readonly options: TokenizerOptions;
  private readonly encoder: Encoder;
  private readonly controlMatcher: AddedTokens;
  private readonly chat: ChatTemplate | undefined;
  private readonly bos: number | undefined;

  /** @throws Error if the tokenizer or a template is broken; the message names no path */
  constructor(options: TokenizerOptions) {
    this.options = options;
    const json = readTokenizerJson(options.tokenizerFile);
    const config = options.tokenizerConfig;
    const source = options.chatTemplate;
    const ids = options.bos === undefined ? options.eos : [...options.eos, options.bos];
    const control = controlTokens({ json, config, templates: source === undefined ? [] : [source], ids });
    this.controlMatcher = new AddedTokens(control);
    this.encoder = new Encoder(json, control);
    const textOf = (id: number | undefined): string | undefined => control.find((token) => token.id === id)?.content;
    const fromModel = { bos_token: textOf(options.bos), eos_token: textOf(options.eos[0]) };
    const variables = config === undefined ? fromModel : namedTokens(config);
    this.bos = options.bos ?? control.find(({ content }) => content === variables.bos_token)?.id;
    this.chat =
      source === undefined
        ? undefined
        : new ChatTemplate({ source, variables, control, controlMatcher: this.controlMatcher });
  }

  /**
   * @returns the token ids of the prompt; never empty
   * @throws InferenceError `invalid_argument`
   */
  encode({ prompt, continues }: EncodeRequest): Int32Array<ArrayBuffer> {
    const tokens = this.tokensOf(prompt, continues);
    const { vocabSize } = this.options;
    const outside = tokens.find((token) => token >= vocabSize);
    if (outside !== undefined) {
      throw new InferenceError("invalid_argument", `token id ${outside} is out of the vocabulary of ${vocabSize}`);
    }
    if (tokens.length === 0) throw fixedError("invalid_argument", "emptyPrompt");
    return Int32Array.from(tokens);
  }

  private tokensOf(prompt: PromptSpec, continues: boolean): readonly number[] {
    if (prompt.kind === "tokens") return prompt.tokens;
    if (prompt.kind === "text") {
      const tokens = this.encoder.encode(escapeControlTokens(prompt.text, this.controlMatcher));
      return continues ? tokens : this.encoder.surround(tokens);
    }
    if (this.chat === undefined) {
      throw new InferenceError("invalid_argument", `model '${this.options.name}' has no chat template`);
    }
    const tokens = this.encoder.encode(this.chat.render(prompt));
    // Templates begin every text with the token `bos`, but a turn continues its conversation.
    return continues && tokens[0] !== undefined && tokens[0] === this.bos ? tokens.slice(1) : tokens;
  }
}
