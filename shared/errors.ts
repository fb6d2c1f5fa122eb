/**
 * Every refusal and failure that Baton gives, by code. Codes travel over Redis and NATS and stay
 * stable. Whether to retry depends on this table, never on a text. Statuses and texts follow
 * Triton's if Triton has the same situation.
 */
export interface ErrorKind {
  /** HTTP status on KServe paths. */
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 410 | 413 | 415 | 422 | 429 | 500 | 501 | 503 | 507;
  /** The status of gRPC, if `grpcStatuses` has another for the HTTP status. */
  readonly grpc?: number;
  /** The same request may succeed later, unchanged. Adds `Retry-After`. */
  readonly retry: boolean;
  /**
   * The fixed texts, by occasion. Other texts quote the request, name its parameter or come from a
   * Redis script; the code that makes such a text contains it. No text may change, because clients
   * match on texts.
   */
  readonly texts?: Readonly<Record<string, string>>;
}

export const errorKinds = {
  /** The body is not the JSON that the path takes: broken, of wrong types, or nested too deeply. */
  invalid_json: { status: 400, retry: false },
  /** A value in the path, the query, a header or the body is wrong; the text names the value. */
  invalid_argument: {
    status: 400,
    retry: false,
    texts: {
      malformedHttp: "malformed HTTP request",
      headTooLarge: "the request's head is larger than 16 KiB",
      tenant: "the tenant must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -",
      severalCredentials: "more than one credential",
      idempotencyKey: "Idempotency-Key must be 1 to 255 printable ASCII characters",
      decompression: "failed to decompress the request body",
      contentEncoding: "Unsupported content-encoding, only 'identity' is supported.",
      repositoryReady: "Invalid value for 'ready': expected a boolean",
      reservedParameter:
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
      webSocketOnly: "this path is for WebSockets",
      offsetMissing: "live needs an offset: -1, now, or the Stream-Next-Offset of the answer before",
      manyResponses:
        "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses",
      noMessages: "the prompt has no messages",
      messageContent: "a message's content must be a text or a list of parts",
      textPartsOnly: "this model takes no content parts but those of type 'text'",
      unknownRole: "a message's role is not known to this model",
      nestedTooDeeply: "the prompt is nested too deeply",
      renderedTooLarge: "the prompt is too large after the chat template",
      takesTooLong: "the prompt takes too long to tokenise",
      takesTooMuchMemory: "the prompt takes too much memory to tokenise",
      emptyPrompt: "the prompt is empty",
      oneChoicePerTurn: "a conversation's turn has one choice: n must be 1",
      durableWithoutCapture:
        "'durable' is not supported: this deployment captures no records (BATON_CAPTURE_TTL_MS is 0)",
      subscriptionScopes: "'model' and 'label' are both given; a subscription has at most one of them",
    },
  },
  /** Triton answers 500 if a JSON tensor's element count differs from its shape. */
  data_shape_mismatch: {
    status: 500,
    retry: false,
    texts: {
      tooManyElements: "Unable to parse 'data': Shape does not match true shape of 'data' field",
      tooFewElements: "Failed to parse 'data' field: shape does not match true shape",
    },
  },
  /** The body, or its memory while a gateway parses it, exceeds a limit. */
  payload_too_large: {
    status: 413,
    retry: false,
    texts: {
      chunkExtensions: "a chunk's extensions are larger than 16 KiB",
      parseMemory: "the request body takes too much memory to parse",
    },
  },
  /** The request did not arrive within 120 s, or a file not within `BATON_UPLOAD_MS`. */
  request_timeout: { status: 408, retry: false, texts: { usual: "the request took too long to arrive" } },
  /** The deadline that a client of gRPC gave its call has passed. */
  deadline_exceeded: { status: 408, retry: false, texts: { usual: "the deadline of the call has passed" } },
  /** A browser's page has no permission, or the request does not name its tenant. */
  forbidden: {
    status: 403,
    retry: false,
    texts: {
      otherOrigin: "a page of another origin may not do this; BATON_ALLOWED_ORIGINS names the origins that may",
      noTenant: "the request does not say whose it is: the header that this gateway takes the tenant from is missing",
      notProxy: "the request does not come from a proxy that this gateway trusts; BATON_TRUSTED_PROXIES names them",
      settings: "only requests without a tenant may read the settings of a gateway",
      observing: "only requests without a tenant may change the settings of traces and of the log",
      board: "the board can only look, try again, try now, pause and resume",
    },
  },
  /** The deployment asks for a key, and the request has no credential. */
  missing_api_key: {
    status: 401,
    retry: false,
    texts: {
      usual: "no API key was given: send 'Authorization: Bearer <key>'",
      inUrl: "no API key was given: send 'Authorization: Bearer <key>'; keys do not belong into URLs",
    },
  },
  /**
   * The key is malformed or unknown, or its secret is wrong. The same for a ticket, which is also
   * good for a single request and for a short time only.
   */
  invalid_api_key: {
    status: 401,
    retry: false,
    texts: {
      usual: "the API key is not valid",
      ticket: "the ticket is not valid: it may have expired, or be for another request",
    },
  },
  /** The token of the identity provider is not good here; the message names the claim. */
  invalid_token: {
    status: 401,
    retry: false,
    texts: {
      usual: "the token is not valid: its signature cannot be verified",
      expired: "the token has expired",
    },
  },
  /** An administrator of the tenant, or an operator, has revoked the key. */
  revoked_api_key: { status: 401, retry: false, texts: { usual: "the API key was revoked" } },
  /** The key's expiry has passed, or another key has replaced the key and the overlap is over. */
  expired_api_key: { status: 401, retry: false, texts: { usual: "the API key has expired" } },
  /** The deployment has no such key, or the caller may not see it. */
  unknown_key: { status: 404, retry: false, texts: { usual: "no such key" } },
  /** An operator has made no such tenant, or the caller may not see it. */
  unknown_tenant: { status: 404, retry: false, texts: { usual: "no such tenant" } },
  /** An operator has already made a tenant with this name. */
  tenant_exists: { status: 409, retry: false, texts: { usual: "the tenant exists already" } },
  /** Only a suspended tenant without keys can be removed. */
  tenant_in_use: {
    status: 409,
    retry: false,
    texts: {
      active: "the tenant is active: suspend it first",
      keys: "the tenant has keys that are not revoked",
    },
  },
  /** Without this key, nobody could administer the deployment by its API. */
  last_operator_key: {
    status: 409,
    retry: false,
    texts: { usual: "no other active key has the scope 'operator': make another first" },
  },
  /** The key may not do this; the text names the scope. */
  insufficient_scope: { status: 403, retry: false },
  /** The path is part of an API of `BATON_RESTRICTED_APIS`, and its header is missing or wrong. */
  restricted_api: { status: 403, grpc: 14, retry: false },
  /** An operator has suspended the tenant of the key. */
  tenant_suspended: { status: 403, retry: false, texts: { usual: "the tenant is suspended" } },
  /** The gateway has no such path. */
  not_found: { status: 404, retry: false, texts: { usual: "Not Found" } },
  /** The path exists, but not for this method; the header `Allow` lists the methods. */
  method_not_allowed: {
    status: 405,
    retry: false,
    texts: {
      usual: "Method Not Allowed",
      readOnly: "the stream of a request is written by the worker that runs it: it can only be read, by GET and HEAD",
    },
  },
  /** Baton does not have this feature of the protocol, or this deployment has switched it off. */
  unsupported: {
    status: 501,
    retry: false,
    texts: {
      decoupledHttp: "HTTP end point doesn't support models with decoupled transaction policy",
      decoupledGrpc: "ModelInfer RPC doesn't support models with decoupled transaction policy",
      decoupledJob: "a job has one answer, and a model with decoupled transaction policy has any number",
      compression: "Unsupported compression type",
      repositoryName: "'repository_name' specification is not supported",
      modelControl: "explicit model load / unload is not allowed if polling is enabled",
      administrationOff: "this gateway changes no keys and no tenants: BATON_ADMIN_API is off",
      noKeys: "this deployment asks for no API keys, so none can be administered (BATON_AUTH)",
      noTickets: "this deployment gives no tickets: they need BATON_AUTH and a pepper (BATON_AUTH_SECRET_FILE)",
      natsCredentials: "this deployment gives no credentials for NATS: BATON_NATS_SIGNING_SEED switches that on",
      sharedMemory: "Client shared memory is disabled. Send tensors in the request and take them from the response.",
    },
  },
  /** No worker serves a model, or a version of the model, with this name. */
  unknown_model: { status: 404, retry: false },
  /** Workers could not load this version of the model; `/v2/repository/index` has the reason. */
  model_unavailable: { status: 503, retry: true },
  /**
   * The step has no START flag, and its sequence is not live; `reason` says how the sequence ended.
   */
  sequence_start_required: { status: 400, retry: false },
  /** The caller has no such sequence, or the sequence is over. */
  sequence_unknown: { status: 404, retry: false },
  /** The id of the new sequence belongs to a live sequence. */
  sequence_exists: { status: 409, retry: false },
  /** Steps of the sequence are queued or run, and the change needs a sequence at rest. */
  sequence_busy: { status: 409, retry: true },
  /** Baton has deleted the checkpoint after that step. */
  checkpoint_gone: { status: 410, retry: false },
  /** The bytes to import are no exported state, or are damaged. */
  frame_corrupt: {
    status: 400,
    retry: false,
    texts: {
      unreadable: "the body is no whole frame of a sequence's checkpoint: send the bytes that GET …/state answered",
      checksum: "the frame does not match its checksum: send the bytes that GET …/state answered",
    },
  },
  /** The state to import belongs to another model, or to other model files. */
  frame_mismatch: { status: 409, retry: false },
  /**
   * No worker serves the version of the model, or the files, with which the sequence began. The
   * client can only begin a new sequence.
   */
  version_retired: {
    status: 410,
    retry: false,
    texts: {
      meanwhile:
        "the version of the model that the sequence began with is served no longer; begin it anew with the START flag",
    },
  },
  /** As many steps of the sequence wait as `BATON_SEQUENCE_BACKLOG` allows. */
  sequence_backlog: {
    status: 429,
    retry: true,
    texts: { usual: "too many steps of this sequence are waiting" },
  },
  /**
   * The model has as many live sequences as `BATON_SEQUENCE_LIMIT` allows, or the tenant has as
   * many as its limit says.
   */
  sequence_limit: { status: 429, retry: true, texts: { usual: "too many live sequences" } },
  /** The `Idempotency-Key` already belongs to a request with other content. */
  idempotency_mismatch: {
    status: 422,
    retry: false,
    texts: { usual: "the Idempotency-Key was used for a different request" },
  },
  /** The tenant has reached a limit on queued requests or on their bytes. */
  tenant_limit: { status: 429, retry: true },
  /**
   * The API key or the tenant has as many generations that have not ended, or as many open readers,
   * as it may have.
   */
  stream_limit: { status: 429, retry: true },
  /** The API key or the tenant has sent more requests than its limit allows. */
  rate_limit_exceeded: { status: 429, retry: false, texts: { usual: "Rate limit reached for" } },
  /** The API key or the tenant has used up its quota of the day or the month. */
  insufficient_quota: { status: 429, retry: false },
  /** The request has ended, and Baton has deleted the result. */
  result_expired: {
    status: 410,
    retry: false,
    texts: { usual: "the request has ended, and its result is not kept any more" },
  },
  /** The queue, or the store of delayed jobs, has reached a limit on requests or on their bytes. */
  queue_full: { status: 503, retry: true, texts: { usual: "Exceeds maximum queue size" } },
  /** Redis or another part of the fleet does not answer, or this process is stopping. */
  unavailable: {
    status: 503,
    retry: true,
    texts: {
      stopping: "the gateway is stopping",
      loading: "no worker serves the model as asked yet; the workers go on to load it",
      unloading: "a worker still serves the model; the workers go on to unload it",
      webSocketStopping: "this gateway is stopping",
      workerStopping: "the worker is stopping",
      tokenizer: "the tokenizer has failed",
      queue: "the fleet takes no requests now: its queue cannot be written to",
      versionLeft: "the version of the model that took the request is served no longer: send it again",
      fleet: "the fleet cannot be asked now",
      schedules: "the schedules of all take as much memory as they may; try again later",
      lookUp: "the request cannot be looked up now",
      tooManyReads: "too many clients ask for usage now",
      tooManyFollowers: "as many clients follow the fleet at this gateway as may",
      keys: "API keys cannot be looked up now",
      jetStream: "JetStream cannot be asked now",
      stream: "the stream cannot be read now",
      files: "files cannot be read or written now",
      uploads: "as many files are coming or going now as this gateway can carry",
      asleep:
        "the sequence's state lies on disk, where this gateway cannot read it: BATON_HIBERNATE_DIR names the folder",
    },
  },
  /** Baton may or may not have written the change; safe to retry under the same Idempotency-Key. */
  outcome_unknown: {
    status: 503,
    retry: true,
    texts: {
      admission: "the request may or may not have been accepted; retry it under its Idempotency-Key",
      unreadable: "the request's outcome cannot be read now",
      change: "the change may or may not have been made; ask for it again under its Idempotency-Key",
    },
  },
  /**
   * The deadline passed before a result. The model never ran this request, or the result came too
   * late to count.
   */
  expired: {
    status: 503,
    retry: false,
    texts: {
      /** A tensor model's result, or the first token of a generation. */
      beforeResult: "Request timeout expired",
      beforeEnd: "the answer was not finished within its total_timeout",
      unfinished: "the request's deadline passed before it was finished",
    },
  },
  /** A client cancelled the request, or left before the answer was complete. */
  cancelled: {
    status: 400,
    grpc: 1,
    retry: false,
    texts: {
      bodyIncomplete: "the connection closed before the request's body was complete",
      clientGone: "the client is gone",
      clientLeft: "the client left before the answer was complete",
      byClient: "the request was cancelled",
      unread: "nobody reads this stream any more",
      alreadyEnded: "the request has ended",
    },
  },
  /** The model itself refused this request; the sequence keeps its state. */
  model_error: { status: 500, retry: false },
  /** Too many runs of this request ended the worker process, so Baton set the request aside. */
  poison_request: {
    status: 500,
    retry: false,
    texts: { usual: "the request was set aside: no worker that ran it came back" },
  },
  /** Redis no longer has the sequence's checkpoint, or records of the stream. */
  state_lost: {
    status: 500,
    retry: false,
    texts: {
      checkpointGone: "the sequence's state is gone although it has committed steps",
      recordsGone: "records of the stream are gone",
      otherThanLog: "the stream is not what its log says",
    },
  },
  /** The sequence's checkpoint is damaged, or does not fit the version of the model. */
  state_corrupt: {
    status: 500,
    retry: false,
    texts: {
      unreadable: "the sequence's checkpoint cannot be read",
      checksum: "the sequence's checkpoint does not match its checksum",
      unfit: "the sequence's state is not of the kind that this version of the model takes",
    },
  },
  /** The step would make the sequence's state larger than `BATON_MAX_STATE_BYTES`. */
  state_too_large: { status: 500, retry: false },
  /** Something outside Baton destroyed the queue's entry before a worker finished the request. */
  request_lost: {
    status: 500,
    retry: true,
    texts: {
      entryGone: "the accepted request is gone from the queue",
      destroyed: "the queued request was destroyed before it ran",
      logGone: "the stream's log is gone",
      recordsEnd: "the records of this request end before its answer does",
    },
  },
  /** The tenant has no such job, or `BATON_JOB_TTL_MS` has passed since its end. */
  unknown_job: { status: 404, retry: false, texts: { usual: "no such job" } },
  /** The job has no result yet. */
  job_not_ended: { status: 409, retry: true, texts: { usual: "the job has not ended yet" } },
  /** Baton retries only jobs that have failed or expired, and only while the body exists. */
  job_not_retryable: {
    status: 409,
    retry: false,
    texts: {
      usual: "only a job that has failed or expired can be run once more",
      deadline: "the job's deadline has passed, so it cannot be run once more",
      body: "what the job was sent is kept no longer, so it cannot be run once more",
    },
  },
  /** The tenant has no such request that was set aside, or Baton has deleted its copy. */
  unknown_dead: {
    status: 404,
    retry: false,
    texts: { usual: "no such request was set aside, or it is kept no longer" },
  },
  /** The request that was set aside ran for a waiting client and not for a job. */
  dead_not_retryable: {
    status: 409,
    retry: false,
    texts: {
      usual:
        "only what ran for a job can be run once more; its client was told that it failed, and can send it again: " +
        "of a sequence, from the step with START on",
    },
  },
  /** The tenant has no such request, or Baton has deleted its log and its outcome. */
  unknown_request: { status: 404, retry: false, texts: { usual: "no such request" } },
  /** The tenant has no such webhook. */
  unknown_webhook: { status: 404, retry: false, texts: { usual: "no such webhook" } },
  /** The tenant has no such delivery, or Baton has deleted it. */
  unknown_delivery: { status: 404, retry: false, texts: { usual: "no such delivery" } },
  /** The tenant has no such file, or the file has expired. */
  unknown_file: { status: 404, retry: false, texts: { usual: "no such file" } },
  /** A batch that has not ended reads the file. */
  file_in_use: { status: 409, retry: false, texts: { usual: "a batch that has not ended reads this file" } },
  /** The tenant has reached a limit on files or on their bytes. */
  file_limit: { status: 429, retry: false },
  /** All files together have reached the limit, or the store has no room. */
  storage_full: { status: 507, retry: false, texts: { usual: "there is no room for more files" } },
  /** A webhook's URL leads to a forbidden address. */
  url_not_allowed: { status: 400, retry: false },
  /** The tenant, or the deployment, has reached a limit on JetStream consumers. */
  subscription_limit: {
    status: 429,
    retry: true,
    texts: { usual: "too many subscriptions: those that nobody reads go away by themselves" },
  },
  /** The tenant has reached its limit on webhooks. */
  webhook_limit: { status: 429, retry: false },
  /** The tenant has no such schedule. */
  unknown_schedule: { status: 404, retry: false, texts: { usual: "no such schedule" } },
  /** No client can pause or resume a schedule that has ended. */
  schedule_ended: { status: 409, retry: false, texts: { usual: "the schedule has ended" } },
  /** The tenant has reached a limit on schedules or on their bytes. */
  schedule_limit: { status: 429, retry: false },
  /** Clients replayed a delivery, or a tenant's deliveries together, too often. */
  replay_limit: { status: 429, retry: true },
  /** The tenant has no such batch, or Baton has deleted it. */
  unknown_batch: { status: 404, retry: false, texts: { usual: "no such batch" } },
  /** The tenant has reached its limit on batches that have not ended. */
  batch_limit: { status: 429, retry: true },
  /**
   * A client names a step that its sequence has not reached: the fleet has lost answered steps, or
   * the client guesses.
   */
  ahead_of_state: { status: 409, retry: false },
  /** A client names a step that its sequence has already taken. */
  behind_of_state: { status: 409, retry: false },
  /**
   * A client resumes after an index that the stream has not reached: the client read another
   * stream, or Redis has lost the log.
   */
  ahead_of_log: {
    status: 409,
    retry: false,
    texts: { usual: "the stream has not reached the index to resume after" },
  },
  /** A client asks for the records of a request whose result is tensors. */
  not_a_stream: {
    status: 409,
    retry: false,
    texts: {
      usual: "the request gives tensors and has no stream: GET /v2/requests/<id> gives its outcome",
      model: "the model gives tensors, and its requests have no streams",
    },
  },
  /** A client cancels a request that has ended by itself. */
  already_ended: { status: 409, retry: false, texts: { usual: "the request has ended" } },
  /** Baton has deleted the stream's log, because its TTL has passed. */
  resume_window_passed: { status: 410, retry: false, texts: { usual: "the stream is not kept any more" } },
  /** A bug in Baton; the gateway's log has the details. */
  internal: {
    status: 500,
    retry: false,
    texts: { usual: "internal error", tokenizer: "the prompt could not be tokenised" },
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;

/** Why the sequence of a refused step does not exist. */
export type RefusalReason = "never_started" | "expired" | "ended" | "deleted" | "cancelled" | "version_retired";

/**
 * The reason of a refusal that gives none. Workers answer `sequence_start_required` only to steps
 * of a failed sequence.
 */
export function usualReason(code: ErrorCode): RefusalReason | undefined {
  if (code === "sequence_start_required") return "cancelled";
  return code === "version_retired" ? code : undefined;
}

type Kinds = typeof errorKinds;
type CodeWithTexts = { [C in ErrorCode]: Kinds[C] extends { readonly texts: object } ? C : never }[ErrorCode];

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorKinds, code);
}

/**
 * Ends an operation with a code for the client. The client reads `message`, so a message never
 * contains a path, a key or an address.
 */
export class InferenceError extends Error {
  override readonly name = "InferenceError";
  readonly code: ErrorCode;
  /** Why Baton refused a step; undefined for all other errors. */
  readonly reason: RefusalReason | undefined;
  /** The limit that refused a request; undefined for all other errors. */
  readonly limited: Limited | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options?: ErrorOptions & {
      readonly reason?: RefusalReason | undefined;
      readonly limited?: Limited | undefined;
    },
  ) {
    super(message, options);
    this.code = code;
    this.reason = options?.reason ?? usualReason(code);
    this.limited = options?.limited;
  }
}

/** A limit of an owner. */
export interface Limited {
  /** The name of the limit, as administrators set it. */
  readonly limit: string;
  /** Whose limit it is. */
  readonly scope: "key" | "tenant";
  /** When the client may try again, in ms; undefined if no time helps. */
  readonly waitMs?: number;
}

/** @returns an error with one of the code's fixed texts */
export function fixedError<C extends CodeWithTexts>(
  code: C,
  text: keyof Kinds[C]["texts"],
  options?: ErrorOptions,
): InferenceError {
  const texts: Readonly<Record<PropertyKey, string>> = errorKinds[code].texts;
  return new InferenceError(code, texts[text] ?? code, options);
}

/**
 * Shortens a text that quotes a value of the client, for example a name of many megabytes.
 * @param most characters of the text
 * @param rest stands for the rest of a text that is cut
 * @returns a well-formed text: a cut may split a character, and no encoder takes half a character
 */
export function shortened(text: string, most: number, rest = "..."): string {
  const short = text.length > most ? text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "") + rest : text;
  return Buffer.from(short).toString();
}
