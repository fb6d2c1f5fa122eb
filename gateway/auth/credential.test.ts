import { describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { readCredential, type CredentialTexts } from "./credential.js";

const key = "bt_0123456789ab_BatonTestVector0000000000000000x41OopR";
const texts = (given: Partial<CredentialTexts>): CredentialTexts => ({
  authorization: [],
  apiKey: [],
  target: "/v2",
  ...given,
});
const refusal = (given: Partial<CredentialTexts>): unknown => {
  try {
    return readCredential(texts(given));
  } catch (error) {
    if (error instanceof InferenceError) return [error.code, error.message];
    throw error;
  }
};

describe("a credential", () => {
  it.each<[string, Partial<CredentialTexts>]>([
    ["as a bearer", { authorization: [`Bearer ${key}`] }],
    ["under any case of the scheme", { authorization: [`bEARER  ${key} `] }],
    ["in a header for keys", { apiKey: [key] }],
    ["several times", { authorization: [`Bearer ${key}`], apiKey: [key, key] }],
  ])("is a key, %s", (_, given) => {
    expect(readCredential(texts(given))).toEqual({ kind: "key", text: key });
  });

  it("is a token if it has three parts", () => {
    expect(readCredential(texts({ authorization: ["Bearer e30.e30.c2ln"] })).kind).toBe("token");
  });

  it("is a ticket on a path that tickets open, wherever it stands there", () => {
    const tickets = { texts: ["tk_a.b", "tk_a.b"], request: "r" };
    expect(readCredential(texts({ tickets }))).toEqual({ kind: "ticket", text: "tk_a.b", request: "r" });
  });

  const missing = "no API key was given: send 'Authorization: Bearer <key>'";
  const scheme = "is not supported: send 'Authorization: Bearer <key>'";
  it.each<[string, Partial<CredentialTexts>, [string, string]]>([
    ["none", {}, ["missing_api_key", missing]],
    [
      "a key in the URL",
      { target: `/v2?api_key=${key}` },
      ["missing_api_key", `${missing}; keys do not belong into URLs`],
    ],
    [
      "a key as a ticket",
      { target: `/v2?a=1&ticket=${key}`, tickets: { texts: [key], request: "r" } },
      ["missing_api_key", `${missing}; keys do not belong into URLs`],
    ],
    [
      "two headers",
      { authorization: [`Bearer ${key}`, `Bearer ${key}`] },
      ["invalid_argument", "more than one credential"],
    ],
    ["two keys", { apiKey: [key, "bt_other"] }, ["invalid_argument", "more than one credential"]],
    [
      "a key beside another",
      { authorization: ["Bearer a.b.c"], apiKey: [key] },
      ["invalid_argument", "more than one credential"],
    ],
    [
      "a ticket beside a key",
      { apiKey: [key], tickets: { texts: ["tk_a.b"], request: "r" } },
      ["invalid_argument", "more than one credential"],
    ],
    [
      "two tickets",
      { tickets: { texts: ["tk_a.b", "tk_a.c"], request: "r" } },
      ["invalid_argument", "more than one credential"],
    ],
    ["Basic", { authorization: ["Basic YTpi"] }, ["invalid_argument", `Basic ${scheme}`]],
    [
      "a scheme of odd characters",
      { authorization: ["B\u0000sic YTpi"] },
      ["invalid_argument", `this scheme of authorization ${scheme}`],
    ],
    ["no value", { authorization: ["Bearer"] }, ["invalid_api_key", "the API key is not valid"]],
    ["two values", { authorization: [`Bearer ${key}, ${key}`] }, ["invalid_api_key", "the API key is not valid"]],
    ["rubbish", { apiKey: ["sk-123"] }, ["invalid_api_key", "the API key is not valid"]],
    ["an empty header", { apiKey: [""] }, ["invalid_api_key", "the API key is not valid"]],
  ])("is refused: %s", (_, given, told) => {
    expect(refusal(given)).toEqual(told);
  });
});
