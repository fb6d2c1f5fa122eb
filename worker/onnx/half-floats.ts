/**
 * Reads 16-bit floats. ONNX Runtime's binding gives and takes them as bits, and JavaScript has no
 * such numbers.
 */

/** The value of every 16-bit float, by its bits; undefined before the first use. */
let table: Float32Array | undefined;

/** Reads IEEE 754 half precision from bits: the binding gives FP16 tensors as Uint16Array. */
export function floatsOfHalves(halves: Uint16Array): Float32Array {
  table ??= Float32Array.from({ length: 65_536 }, (_, bits) => floatOfHalf(bits));
  const floats = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) floats[i] = table[halves[i] ?? 0] ?? 0;
  return floats;
}

function floatOfHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
