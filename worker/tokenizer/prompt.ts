/** A prompt as the client gave it to the tokens that the model continues. */
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import { AddedTokens, inert } from "./added-tokens.js";
import { ChatTemplate } from "./chat.js";
import { controlTokens, namedTokens } from "./control.js";
import { Encoder } from "./encoder.js";
import type { EncodeRequest, TokenizerOptions } from "./protocol.js";
import { readTokenizerJson } from "./tokenizer-json.js";

export class PromptEncoder {
  private readonly options: TokenizerOptions;
  private readonly encoder: Encoder;
  private readonly controls: AddedTokens;
  private readonly chat: ChatTemplate | undefined;
  private readonly bos: number | undefined;

  /** @throws Error when the tokenizer or a template is broken; names no path */
  constructor(options: TokenizerOptions) {
    this.options = options;
    const json = readTokenizerJson(options.tokenizerFile);
    const config = options.tokenizerConfig;
    const source = options.chatTemplate;
    const ids = options.bos === undefined ? options.eos : [...options.eos, options.bos];
    const control = controlTokens({ json, config, templates: source === undefined ? [] : [source], ids });
    this.controls = new AddedTokens(control);
    this.encoder = new Encoder(json, control);
    const textOf = (id: number | undefined): string | undefined => control.find((token) => token.id === id)?.content;
    const fromModel = { bos_token: textOf(options.bos), eos_token: textOf(options.eos[0]) };
    const variables = config === undefined ? fromModel : namedTokens(config);
    this.bos = options.bos ?? control.find(({ content }) => content === variables.bos_token)?.id;
    this.chat =
      source === undefined ? undefined : new ChatTemplate({ source, variables, control, controls: this.controls });
  }

  /** @throws InferenceError */
  encode({ prompt, continues }: EncodeRequest): Int32Array<ArrayBuffer> {
    const tokens = this.tokensOf(prompt, continues);
    const { vocabSize } = this.options;
    const outside = tokens.find((token) => token >= vocabSize);
    if (outside !== undefined) {
      throw new InferenceError("invalid_argument", `token id ${outside} is out of the vocabulary of ${vocabSize}`);
    }
    if (tokens.length === 0) throw new InferenceError("invalid_argument", "the prompt is empty");
    return Int32Array.from(tokens);
  }

  private tokensOf(prompt: PromptSpec, continues: boolean): readonly number[] {
    if (prompt.kind === "tokens") return prompt.tokens;
    if (prompt.kind === "text") {
      const tokens = this.encoder.encode(inert(prompt.text, this.controls));
      return continues ? tokens : this.encoder.surround(tokens);
    }
    if (this.chat === undefined) {
      throw new InferenceError("invalid_argument", `model '${this.options.name}' has no chat template`);
    }
    const tokens = this.encoder.encode(this.chat.render(prompt));
    // Templates begin each text anew, and a conversation's turn is none.
    return continues && tokens[0] !== undefined && tokens[0] === this.bos ? tokens.slice(1) : tokens;
  }
}
