// Requirements on capabilities in addresses.

/** A requirement: the key of a capability, an optional operator, and the operand. */
export interface Need {
  readonly key: string;
  readonly operator: string;
  readonly operand: string;
}

/** The operators of requirements; `=` is a synonym of `>=`. */
export const operators: readonly string[] = ["==", "!=", ">=", "<=", ">", "<", "s==", "s!=", "s>=", "s<=", "s>", "s<", "<in>", "<or>", "<all-in>"];

/** A requirement in an address: key, operator and operand, separated by bars. */
export const written = ({ key, operator, operand }: Need): string => [key, operator, operand].join("|");

export function readNeed(text: string): Need {
  const [key = "", operator = "", ...rest] = text.split("|");
  return { key, operator, operand: rest.join("|") };
}

/** Returns a requirement as an input of the API. */
export const requirementOf = ({ key, operator, operand }: Need) => ({ key, requirement: [operator, operand.trim()].filter(Boolean).join(" ") });

/** Returns the complete requirements. */
export const complete = (needs: readonly Need[]): Need[] => needs.filter((need) => need.key && need.operand.trim());
