import { expect, it } from "vitest";
import { gatewayConfig } from "./config.js";

it("the gateway forwards no headers to models, and says so instead of ignoring the setting", () => {
  expect(() => gatewayConfig({ BATON_HEADER_FORWARD_PATTERN: "" })).not.toThrow();
  expect(() => gatewayConfig({ BATON_HEADER_FORWARD_PATTERN: "x-.*" })).toThrow(
    "BATON_HEADER_FORWARD_PATTERN: must be unset: only backends of one's own read headers",
  );
});

it("the gateway takes origins as browsers write them, and names others", () => {
  const origins = "https://a.example, tauri://localhost, http://[::1]:3000";
  expect(() => gatewayConfig({ BATON_ALLOWED_ORIGINS: origins })).not.toThrow();
  const entry = "https://app.example.com:443";
  expect(() => gatewayConfig({ BATON_ALLOWED_ORIGINS: entry })).toThrow(`BATON_ALLOWED_ORIGINS: '${entry}' is`);
});
