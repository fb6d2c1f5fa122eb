/** The tensor datatypes of the KServe v2 protocol, and the bytes of an element. */
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
  /** Elements vary in length: each is a u32 LE length and that many bytes. */
  BYTES: 0,
} as const;

export type Datatype = keyof typeof datatypeBytes;

export function isDatatype(name: string): name is Datatype {
  return Object.hasOwn(datatypeBytes, name);
}

/** The number of elements of a shape; 1 for rank 0. Callers have checked that it is below 2^53. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}
