/** The scalars of Cadastre, in JSON and as JavaScript values. */

/** A UUID; in answers lower case with dashes. */
export type UUID = string;

/** A time in UTC, for example `2026-03-01T09:30:00.123456Z`. */
export type DateTime = string;

/**
 * A whole number of up to 64 bits. JavaScript keeps whole numbers exactly up to
 * 2^53, more than any amount of a cloud.
 */
export type Int64 = number;

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Returns the Date of a DateTime, rounded down to milliseconds. */
export function dateOf(text: DateTime): Date {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw new RangeError(`${JSON.stringify(text)} is not a DateTime`);
  return date;
}

/** Returns the DateTime of a time. */
export function dateTimeOf(date: Date): DateTime {
  return date.toISOString();
}
