// Requirements on capabilities, as the addresses of views have them.

/** A requirement: the key of a capability, an operator, which may be empty, and what it compares with. */
export interface Need {
  readonly key: string;
  readonly operator: string;
  readonly operand: string;
}

/** The operators of requirements, as the API documents them; `=` says the same as `>=`. */
export const operators: readonly string[] = ["==", "!=", ">=", "<=", ">", "<", "s==", "s!=", "s>=", "s<=", "s>", "s<", "<in>", "<or>", "<all-in>"];

/** A requirement in an address: its key, operator and operand, with bars between. */
export const written = ({ key, operator, operand }: Need): string => [key, operator, operand].join("|");

export function readNeed(text: string): Need {
  const [key = "", operator = "", ...rest] = text.split("|");
  return { key, operator, operand: rest.join("|") };
}

/** A requirement as the API has it. */
export const requirementOf = ({ key, operator, operand }: Need) => ({ key, requirement: [operator, operand.trim()].filter(Boolean).join(" ") });

/** Returns those that ask for something already. */
export const complete = (needs: readonly Need[]): Need[] => needs.filter((need) => need.key && need.operand.trim());
