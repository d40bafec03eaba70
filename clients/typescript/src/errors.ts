/** Errors of the API. */

/** The codes of errors: a closed set, each described in docs/errors.md. */
export const errorCodes = [
  "BAD_USER_INPUT",
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "CONCURRENT_UPDATE",
  "IN_USE",
  "PROTECTED",
  "CAPACITY_EXCEEDED",
  "QUOTA_EXCEEDED",
  "RATE_LIMITED",
  "QUERY_TOO_COMPLEX",
  "TIMEOUT",
  "UNAVAILABLE",
  "OUTCOME_UNKNOWN",
  "INTERNAL",
  "BAD_REQUEST",
  "GRAPHQL_PARSE_FAILED",
  "GRAPHQL_VALIDATION_FAILED",
  "INTROSPECTION_DISABLED",
  "PERSISTED_QUERY_NOT_FOUND",
  "PERSISTED_QUERY_REQUIRED",
] as const;

/** A code of an error. */
export type ErrorCode = (typeof errorCodes)[number];

/** One error of an answer, as the server sends it. */
export interface AnswerError {
  readonly message: string;
  readonly path?: readonly (string | number)[] | undefined;
  readonly extensions?:
    | {
        readonly code?: ErrorCode | undefined;
        /** The invalid input or header, for example `filter.types[0]`. */
        readonly field?: string | undefined;
        /** The schema coordinate of the input, for example `ResourceFilter.types`. */
        readonly coordinate?: string | undefined;
        /** The number of seconds until a retry. */
        readonly retryAfter?: number | undefined;
        /** The id of the request in the server's log. */
        readonly requestId?: string | undefined;
      }
    | undefined;
}

/** An answer to an operation, or an event of a subscription. */
export interface Answer<Data = unknown> {
  readonly data?: Data | null | undefined;
  readonly errors?: readonly AnswerError[] | undefined;
}

/** The error of a refused request or subscription. A failed connection is not a CadastreError. */
export class CadastreError extends Error {
  override readonly name = "CadastreError";

  constructor(
    /** All errors of the answer, at least one. */
    readonly errors: readonly AnswerError[],
    /** The status of the HTTP response; 200 if a stream was open. */
    readonly status = 200,
    readonly retryAfterHeader?: number,
  ) {
    super(errors.map((error) => error.message).join("; ") || `the server answered with the status ${status}`);
  }

  /** The code of the first error. */
  get code(): ErrorCode | undefined {
    return this.errors[0]?.extensions?.code;
  }

  /** The number of seconds until a retry; undefined if the server did not send it. */
  get retryAfter(): number | undefined {
    return this.errors[0]?.extensions?.retryAfter ?? this.retryAfterHeader;
  }

  /** The messages of invalid inputs by field, for example `input.name`. */
  get fields(): ReadonlyMap<string, string> {
    const fields = new Map<string, string>();
    for (const { message, extensions } of this.errors) {
      const field = extensions?.field;
      if (field !== undefined && !fields.has(field)) fields.set(field, message.startsWith(field + ": ") ? message.slice(field.length + 2) : message);
    }
    return fields;
  }
}

/** Returns the error for a response with these errors. */
export function errorOf(errors: readonly AnswerError[], response: Response): CadastreError {
  const after = Number(response.headers.get("Retry-After") ?? NaN);
  return new CadastreError(errors, response.status, Number.isFinite(after) ? after : undefined);
}

/** Returns the error for a response without a GraphQL answer. */
export async function refusalOf(response: Response): Promise<CadastreError> {
  let errors: readonly AnswerError[] = [];
  try {
    errors = ((await response.json()) as Answer).errors ?? [];
  } catch {
    // a proxy may send anything
  }
  return errorOf(errors, response);
}
