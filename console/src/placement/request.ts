// A request for candidates as it is built, as the address has it, and as it is sent.
import type { CandidateOrder, GroupPolicy, PlacementAskQueryVariables } from "../generated/graphql";

export interface Amount {
  readonly resourceClass: string;
  readonly amount: string;
}

/** The amounts and constraints of one group. Several providers may serve the group without a suffix. */
export interface Group {
  readonly suffix: string;
  readonly resources: readonly Amount[];
  readonly requiredAll: readonly string[];
  readonly requiredAnySets: readonly (readonly string[])[];
  readonly forbidden: readonly string[];
  readonly memberOf: readonly string[]; // in any of these
  readonly inTree: string;
}

export interface Need {
  readonly key: string;
  readonly requirement: string;
}

export interface Request {
  readonly groups: readonly Group[]; // the first has no suffix
  readonly policy: GroupPolicy;
  readonly sameSubtree: readonly (readonly string[])[];
  readonly rootRequired: readonly string[];
  readonly rootForbidden: readonly string[];
  readonly hosts: readonly Need[];
}

export const emptyGroup = (suffix: string): Group => ({ suffix, resources: [], requiredAll: [], requiredAnySets: [], forbidden: [], memberOf: [], inTree: "" });

export const emptyRequest: Request = { groups: [emptyGroup("")], policy: "NONE", sameSubtree: [], rootRequired: [], rootForbidden: [], hosts: [] };

/** Returns a request as a string for the address, without default values. */
export function written(request: Request): string {
  const text = JSON.stringify(sparse({ ...request, groups: request.groups.map(sparse), policy: request.policy === "NONE" ? "" : request.policy }));
  return text === '{"groups":[{}]}' ? "" : text;
}

const sparse = (object: object): object => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== "" && !(Array.isArray(value) && value.length === 0)));

/** Returns the request of an address, without invalid parts. */
export function readRequest(text: string): Request {
  if (!text) return emptyRequest;
  try {
    const { groups, policy, ...rest } = JSON.parse(text) as Partial<Request>;
    const list = Array.isArray(groups) && groups.length > 0 ? groups : [{}];
    return { ...emptyRequest, ...rest, policy: policy === "ISOLATE" ? "ISOLATE" : "NONE", groups: list.map((group, at) => ({ ...emptyGroup(at > 0 ? String(at) : ""), ...group })) };
  } catch {
    return emptyRequest;
  }
}

type Asked = Omit<PlacementAskQueryVariables, "first" | "after">;

/** Returns a request as the arguments of `allocationCandidates`; undefined while it asks for nothing. */
export function argumentsOf(request: Request): Asked | undefined {
  const [whole, ...groups] = request.groups.map(groupOf);
  const any = [whole, ...groups].some((group) => (group?.resources?.length ?? 0) > 0);
  if (!whole || !any) return undefined;
  return {
    ...whole,
    groups: groups.map((group, at) => ({ ...group, suffix: request.groups[at + 1]?.suffix ?? "" })),
    groupPolicy: request.policy,
    sameSubtree: request.sameSubtree.map((suffixes) => ({ suffixes: [...suffixes] })),
    rootRequired: [...request.rootRequired],
    rootForbidden: [...request.rootForbidden],
    ...(request.hosts.length > 0 && { hosts: { requirements: request.hosts.map(({ key, requirement }) => ({ key, requirement })) } }),
  };
}

function groupOf(group: Group) {
  return {
    resources: group.resources.filter(({ resourceClass, amount }) => resourceClass && Number(amount) > 0).map(({ resourceClass, amount }) => ({ resourceClass, amount: Number(amount) })),
    requiredAll: [...group.requiredAll],
    requiredAnySets: group.requiredAnySets.filter((set) => set.length > 0).map((set) => ({ anyOf: [...set] })),
    forbidden: [...group.forbidden],
    memberOf: group.memberOf.length > 0 ? [{ anyOf: [...group.memberOf] }] : [],
    ...(group.inTree && { inTree: group.inTree }),
  };
}

/** Returns the errors of amounts, by the indices of the group and of the amount: `0.1`. */
export function wrongAmounts(request: Request): ReadonlyMap<string, string> {
  const wrong = new Map<string, string>();
  request.groups.forEach((group, at) =>
    group.resources.forEach(({ resourceClass, amount }, index) => {
      if (amount && !/^[1-9]\d{0,9}$/.test(amount)) wrong.set(`${at}.${index}`, "A whole number from 1 on.");
      else if (resourceClass && group.resources.findIndex((other) => other.resourceClass === resourceClass) !== index) wrong.set(`${at}.${index}`, "This class is asked for above.");
    }),
  );
  return wrong;
}

/** The orders in which hosts are chosen. */
export const strategies: readonly { value: CandidateOrder; label: string }[] = [
  { value: "DEPTH_FIRST", label: "Host by host" },
  { value: "SPREAD", label: "Spread" },
  { value: "PACK", label: "Pack" },
  { value: "LEAST_FRAGMENTING", label: "Least fragmenting" },
];
