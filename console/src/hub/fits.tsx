// Where a resource with a placement request fits now: how many candidates there are, on
// which hosts, and why there is none.
import { Link } from "wouter";

import { pictureAt, providerAt } from "../address";
import { graphql } from "../generated";
import type { HubFitsFragment, HubRequestFragment } from "../generated/graphql";
import { requestFrom } from "../placement/flavor";
import { written as writtenRequest } from "../placement/request";
import { Why } from "../placement/why";
import { operators, written } from "../resources/needs";
import { count, Note, numberOf } from "../ui/show";

graphql(`
  fragment HubFits on AllocationCandidateConnection {
    totalCount
    totalCountIsExact
    nodes {
      allocations {
        provider {
          id
          uuid
          name
          root {
            id
            uuid
            name
          }
        }
        resources {
          resourceClass
          amount
        }
      }
    }
    explain {
      ...Explained
    }
  }
`);

graphql(`
  fragment HubRequest on PlacementRequest {
    ...RequestOfFlavor
    ignored {
      key
    }
    problems {
      key
      message
    }
  }
`);

export function Fits({ fits, request }: { fits: HubFitsFragment | null | undefined; request: HubRequestFragment }) {
  const asked = writtenRequest(requestFrom(request));
  const roots = new Map((fits?.nodes ?? []).flatMap(({ allocations }) => allocations.map(({ provider: { root } }) => [root.uuid, root.name] as const)));
  const unasked = !fits && !request.problems.some(({ key }) => key);
  return (
    <div className="fits">
      {unasked && (
        <p>
          It asks for hosts but for no amounts. <Link href={conditionsAt(request)}>Show the hosts that meet its conditions</Link>
        </p>
      )}
      {(unasked ? [] : request.problems).map(({ key, message }) => (
        <Note key={(key ?? "") + message}>
          {key && <span className="mono">{key}</span>} {message}
        </Note>
      ))}
      {fits && (
        <p>
          <b>{fits.totalCount === 0 ? "No candidate" : `${fits.totalCountIsExact ? "" : "Over "}${count(fits.totalCount, "candidate")}`}</b>
          {asked && (
            <>
              . <Link href={pictureAt({ request: asked })}>Show them on the picture</Link>
            </>
          )}
        </p>
      )}
      {roots.size > 0 && (
        <ul className="chips" aria-label="Hosts of the first candidates">
          {[...roots].map(([uuid, name]) => (
            <li key={uuid}>
              <Link className="chip" href={providerAt(uuid)}>
                {name}
              </Link>
            </li>
          ))}
          {fits && fits.totalCount > fits.nodes.length && <li className="dim">of the first {numberOf(fits.nodes.length)} candidates</li>}
        </ul>
      )}
      {fits?.totalCount === 0 && <Why explanation={fits.explain} link={({ uuid, name }) => <Link href={providerAt(uuid)}>{name}</Link>} />}
      {request.ignored.length > 0 && (
        <p className="hint">
          Placement ignores {count(request.ignored.length, "key")}: <span className="mono">{request.ignored.map(({ key }) => key).join(", ")}</span>
        </p>
      )}
    </div>
  );
}

/** The address of the picture of the hosts with the traits and capabilities that a request names. */
const conditionsAt = ({ requiredAll, hosts }: HubRequestFragment): string =>
  "/placement?" + new URLSearchParams([...requiredAll.map((trait) => ["trait", trait]), ...(hosts?.requirements ?? []).map(({ key, requirement }) => ["need", needOf(key, requirement)])]).toString();

/** A requirement as the addresses of pages have it. */
function needOf(key: string, requirement: string): string {
  const [first = "", ...rest] = requirement.split(" ");
  return written(operators.includes(first) ? { key, operator: first, operand: rest.join(" ") } : { key, operator: "", operand: requirement });
}

/** Reports whether a request says anything about hosts. */
export const asksForHosts = ({ requiredAll, hosts, problems }: HubRequestFragment): boolean => requiredAll.length > 0 || (hosts?.requirements.length ?? 0) > 0 || problems.some(({ key }) => key);
