/** Which tokens a choice has seen, for penalties: walking the distinct ones is far cheaper than walking the vocabulary. */
export class TokenCounts {
  /** Distinct tokens, in the order they were first seen. */
  readonly ids: number[] = [];
  /** Beside `ids`: how often the token was put out; 0 for one that is only in the prompt. */
  readonly outputs: number[] = [];
  private readonly slots = new Map<number, number>();

  constructor(prompt: ArrayLike<number> = [], output: ArrayLike<number> = []) {
    for (let i = 0; i < prompt.length; i++) this.slot(prompt[i] as number);
    for (let i = 0; i < output.length; i++) this.add(output[i] as number);
  }

  /** Counts one token of output. */
  add(token: number): void {
    const slot = this.slot(token);
    this.outputs[slot] = (this.outputs[slot] ?? 0) + 1;
  }

  private slot(token: number): number {
    const known = this.slots.get(token);
    if (known !== undefined) return known;
    const slot = this.ids.length;
    this.slots.set(token, slot);
    this.ids.push(token);
    this.outputs.push(0);
    return slot;
  }
}
