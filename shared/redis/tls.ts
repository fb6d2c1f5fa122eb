/** The client library's options for TLS to Redis. */
import { clientTls, redisTls, type ClientTls, type TlsFiles } from "../tls.js";

/** @param files undefined for an address without TLS */
export function tlsOf(files: TlsFiles | undefined): { readonly tls?: ClientTls } {
  return files === undefined ? {} : { tls: clientTls(files, redisTls) };
}
