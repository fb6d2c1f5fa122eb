/**
 * Removes `Float16Array` from this thread. This is a file of its own, because the removal must come
 * before the import of ONNX Runtime. The runtime's binding 1.30 reads no bytes from that type ("not
 * enough space: expected 6, got 0" on Node 24). Without the type in the JavaScript engine, the
 * binding takes FP16 as `Uint16Array`.
 */
Reflect.deleteProperty(globalThis, "Float16Array");
