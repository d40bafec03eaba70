// The metadata that a change of definitions would break, by a dry run.
import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { useEffect, useRef, useState } from "react";
import { type AnyVariables, useClient } from "urql";
import { Link } from "wouter";

import { resourceAt } from "../address";
import { graphql } from "../generated";
import type { BrokenFragment } from "../generated/graphql";
import { errorOf } from "../page";
import { count, Note, numberOf } from "../ui/show";

graphql(`
  fragment Broken on MetadataProblemConnection {
    scanned
    complete
    resourceCount
    nodes {
      resource {
        id
        uuid
        name
        type {
          id
          name
        }
      }
      problems {
        key
        value
        message
      }
    }
  }
`);

export type Broken = BrokenFragment;

/** Merges the results of several dry runs. */
export function together(all: readonly Broken[]): Broken | undefined {
  const [first, ...rest] = all;
  return first && rest.reduce((sum, one) => ({ ...sum, scanned: sum.scanned + one.scanned, complete: sum.complete && one.complete, resourceCount: sum.resourceCount + one.resourceCount, nodes: [...sum.nodes, ...one.nodes] }), first);
}

interface DryRun {
  readonly broken: Broken | undefined;
  readonly error: ReturnType<typeof errorOf> | undefined;
  readonly asking: boolean;
}

/** Runs a change dry after a pause in typing; without an input, it does nothing. */
export function useDryRun<Data, Input extends object>(document: TypedDocumentNode<Data, { input: Input }>, input: Input | undefined, problemsOf: (data: Data) => Broken | null | undefined): DryRun {
  const client = useClient();
  const text = input && JSON.stringify(input);
  const read = useRef(problemsOf);
  read.current = problemsOf;
  const [answer, setAnswer] = useState<{ of: string } & Omit<DryRun, "asking">>();
  useEffect(() => {
    if (text === undefined) return;
    let left = false;
    const timer = setTimeout(async () => {
      const { data, error } = await client.mutation(document as TypedDocumentNode<Data, AnyVariables>, { input: { ...(JSON.parse(text) as Input), dryRun: true } }).toPromise();
      if (!left) setAnswer({ of: text, broken: (data && read.current(data)) ?? undefined, error: error && errorOf(error) });
    }, 350);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [client, document, text]);
  const current = text !== undefined && answer?.of === text ? answer : undefined;
  return { broken: current?.broken, error: current?.error, asking: text !== undefined && !current };
}

export function Drift({ asking, broken, failed }: { asking: boolean; broken: Broken | undefined; failed?: Error | undefined }) {
  return (
    <div role="status" aria-live="polite" className="drift">
      {asking && <p className="hint">Checking resources…</p>}
      {failed && <Note>{failed.message}</Note>}
      {broken && broken.resourceCount === 0 && <Note tone="good">Nothing would break: {count(broken.scanned, "resource")} looked at.</Note>}
      {broken && broken.resourceCount > 0 && (
        <Note tone="warn">
          <p>
            <b>
              {broken.complete ? "" : "At least "}
              {count(broken.resourceCount, "resource")} would break
            </b>{" "}
            of {numberOf(broken.scanned)} looked at.
          </p>
          <ul>
            {broken.nodes.map(({ resource, problems }) => (
              <li key={resource.id}>
                <Link href={resourceAt(resource.uuid)}>{resource.name}</Link>: {problems.map((problem) => problem.message).join("; ")}
              </li>
            ))}
          </ul>
        </Note>
      )}
    </div>
  );
}
