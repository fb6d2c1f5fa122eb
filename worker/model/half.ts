/**
 * Imported before ONNX Runtime. Its binding 1.30 reads no bytes from a Float16Array ("not enough space: expected 6, got 0" on Node 24), but takes FP16 as Uint16Array where the
 * engine has nothing better; so this thread has nothing better.
 */
Reflect.deleteProperty(globalThis, "Float16Array");
