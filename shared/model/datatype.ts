/** KServe v2 datatypes and the size of one element; spec/http-v2.md section 4. */
export const datatypeBytes = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BF16: 2,
  /** Variable: each element is a u32 LE length and that many bytes. */
  BYTES: 0,
} as const;

export type Datatype = keyof typeof datatypeBytes;

export function isDatatype(name: string): name is Datatype {
  return Object.hasOwn(datatypeBytes, name);
}

/** Elements of a shape; 1 for rank 0. Shapes are validated to stay below 2^53 before they get here. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}
