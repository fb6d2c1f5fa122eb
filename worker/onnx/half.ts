/**
 * Removes `Float16Array` from this thread, before ONNX Runtime is imported; hence a file of its
 * own. The runtime's binding 1.30 reads no bytes from that type ("not enough space: expected 6, got
 * 0" on Node 24). Where the JavaScript engine does not have it, the binding takes FP16 as
 * `Uint16Array`.
 */
Reflect.deleteProperty(globalThis, "Float16Array");
