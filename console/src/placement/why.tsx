// Why a request has no candidate.
import type { ReactNode } from "react";

import { graphql } from "../generated";
import type { ExplainedFragment } from "../generated/graphql";
import { Badge, Bar, numberOf } from "../ui/show";

graphql(`
  fragment Explained on CandidateExplanation {
    considered
    steps {
      kind
      path
      constraint
      remaining
    }
    nearest {
      provider {
        id
        uuid
        name
      }
      missing {
        resourceClass
        short
      }
      traits
    }
  }
`);

type Explanation = ExplainedFragment;
type Step = Explanation["steps"][number];

/** Shows how many providers each condition leaves, and the nearest trees. */
export function Why({ explanation, link }: { explanation: Explanation; link: (provider: { uuid: string; name: string }) => ReactNode }) {
  return (
    <div className="why">
      <ol className="why-steps" aria-label="What each condition leaves">
        {explanation.steps.map((step, at) => (
          <li key={at}>
            <span>{meaning(step)}</span>
            <Bar value={step.remaining} most={explanation.considered} />
            <span className="number">
              {numberOf(step.remaining)} left {step.remaining === 0 && <Badge tone="bad">none</Badge>}
            </span>
          </li>
        ))}
      </ol>
      {explanation.nearest.length > 0 && (
        <>
          <h3>Nearest</h3>
          <ul>
            {explanation.nearest.map((miss) => (
              <li key={miss.provider.uuid}>
                {link(miss.provider)}{" "}
                <span className="dim">{lacks(miss)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

export function lacks({ missing, traits }: Pick<Explanation["nearest"][number], "missing" | "traits">): string {
  return [...missing.map(({ resourceClass, short }) => `${numberOf(short)} ${resourceClass} short`), ...traits.map((trait) => `no ${trait}`)].join(", ") || "what it has does not fit together";
}

const groupAt = (path: string | null): string => {
  const place = path?.match(/^groups\[(\d+)\]/)?.[1];
  return place === undefined ? "" : ` (group ${Number(place) + 1})`;
};

/** Describes a condition. */
export function meaning({ kind, path, constraint }: Step): string {
  const [, what = ""] = constraint.split(" ", 2);
  const [name = "", amount = ""] = what.split(":");
  const group = groupAt(path);
  switch (kind) {
    case "HOSTS":
      return "belongs to a host that meets the requirements on hosts";
    case "TAINT":
      return what ? `does not have the taint ${what}` : "does not have any other taint";
    case "RESOURCE_CLASS":
      return `has ${name}${group}`;
    case "RESOURCE_AMOUNT":
      return `can give ${numberOf(Number(amount))} ${name} now${group}`;
    case "IN_TREE":
      return `is in the tree${group}`;
    case "MEMBER_OF":
      return `is in the aggregates${group}`;
    case "FORBIDDEN_TRAIT":
      return `does not have ${what}${group}`;
    case "REQUIRED_TRAIT":
      return what ? `has ${what}${group}` : `has a trait of the set${group}`;
    case "ANCHOR_ROOT":
      return "has a root that meets the requirements on roots";
    case "ONE_ROOT":
      return "has a root from which every group can be served";
    case "REQUIRED_TOGETHER":
      return "has the required traits, with the others that serve";
    case "COMBINATION":
      return "fits together: policy, subtrees, sums of amounts, traits";
  }
}
