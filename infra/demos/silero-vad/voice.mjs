/** A made-up voice: pulses through three formants, four vowels a second, with pauses in between. */

export const RATE = 16_000;

/** The formants of five vowels, in Hz. */
const VOWELS = [
  [730, 1_090, 2_440],
  [270, 2_290, 3_010],
  [300, 870, 2_240],
  [530, 1_840, 2_480],
  [570, 840, 2_410],
];
const BANDWIDTHS = [80, 100, 140];
const LOUDNESS = [1, 0.7, 0.4];

/**
 * @param {number} seconds
 * @returns {Float32Array} samples between -1 and 1; the voice speaks in about two of every three
 *   seconds
 */
export function speak(seconds) {
  const resonators = BANDWIDTHS.map(() => ({ last: 0, beforeLast: 0 }));
  let phase = 0;
  let noise = 1;
  return Float32Array.from({ length: seconds * RATE }, (_, i) => {
    const time = i / RATE;
    phase += (120 * (1 + 0.12 * Math.sin(2 * Math.PI * 2.1 * time) + 0.05 * Math.sin(2 * Math.PI * 5 * time))) / RATE;
    const pulse = phase >= 1 ? 1 : 0;
    phase -= pulse;
    noise = (noise * 16_807) % 2_147_483_647;
    const breath = noise / 2_147_483_647 - 0.5;
    const vowel = VOWELS[Math.floor(time * 4) % VOWELS.length] ?? [];
    let sound = 0;
    for (const [k, resonator] of resonators.entries()) {
      const { last, beforeLast } = resonator;
      const radius = Math.exp((-Math.PI * (BANDWIDTHS[k] ?? 0)) / RATE);
      const turn = 2 * radius * Math.cos((2 * Math.PI * (vowel[k] ?? 0)) / RATE);
      resonator.beforeLast = last;
      resonator.last = (pulse + 0.02 * breath) * (LOUDNESS[k] ?? 0) + turn * last - radius * radius * beforeLast;
      sound += resonator.last * (1 - radius);
    }
    const speaks = Math.sin(Math.PI * time) > -0.2 ? 1 : 0;
    const syllable = Math.sin(Math.PI * ((time * 4) % 1)) ** 0.7;
    return 3.5 * speaks * syllable * sound + 0.003 * breath;
  });
}
