// The form of a placement request: group by group, or from a flavor.
import { request as send } from "@cadastre/client";
import { useState } from "react";

import { graphql } from "../generated";
import type { PlacementFlavorQuery } from "../generated/graphql";
import { useAsk } from "../page";
import { Button, type Choice, Combo, Field, Select } from "../ui/controls";
import { count } from "../ui/show";
import { Names } from "./names";
import { problemOf, useConnection } from "./read";
import { requestFrom } from "./flavor";
import { emptyGroup, emptyRequest, type Group, type Request, wrongAmounts } from "./request";

const flavorsDocument = graphql(`
  query PlacementFlavors {
    resources(filter: { types: ["OS::Nova::Flavor"] }, first: 1000) {
      nodes {
        id
        uuid
        name
      }
    }
  }
`);

const flavorDocument = graphql(`
  query PlacementFlavor($uuid: UUID!) {
    placementRequest(resource: $uuid) {
      ...RequestOfFlavor
      ignored {
        key
      }
      problems {
        key
        message
      }
    }
  }
`);

type Flavor = NonNullable<PlacementFlavorQuery["placementRequest"]>;

interface BuilderProps {
  readonly request: Request;
  readonly onChange: (request: Request) => void;
  readonly classes: readonly string[];
  readonly traits: readonly Choice[];
  readonly aggregates: readonly Choice[];
  readonly trees: readonly Choice[];
  /** The server's errors, by the path of the argument. */
  readonly errors: ReadonlyMap<string, string>;
}

export function Builder({ request, onChange, classes, traits, aggregates, trees, errors }: BuilderProps) {
  const wrong = wrongAmounts(request);
  const edit = (at: number, part: Partial<Group>) => onChange({ ...request, groups: request.groups.map((group, index) => (index === at ? { ...group, ...part } : group)) });
  const free = () => {
    for (let next = 1; ; next++) if (!request.groups.some(({ suffix }) => suffix === `_${next}`)) return `_${next}`;
  };
  return (
    <div className="builder">
      <FromFlavor onChange={onChange} />
      {request.groups.map((group, at) => (
        <GroupForm
          key={at}
          group={group}
          at={at}
          wrong={wrong}
          errors={errors}
          classes={classes}
          traits={traits}
          aggregates={aggregates}
          trees={trees}
          onChange={(part) => edit(at, part)}
          onRemove={() => onChange({ ...request, groups: request.groups.filter((_, index) => index !== at) })}
        />
      ))}
      <div className="actions">
        <Button onPress={() => onChange({ ...request, groups: [...request.groups, emptyGroup(free())] })}>Add a group</Button>
        <Button quiet onPress={() => onChange(emptyRequest)}>
          Reset
        </Button>
      </div>
      <details open={request.groups.length > 2 || request.sameSubtree.length > 0 || request.hosts.length > 0 || request.rootRequired.length > 0 || request.rootForbidden.length > 0 || undefined}>
        <summary>The whole request</summary>
        <div className="group-more">
          <Select
            label="Groups with suffixes"
            value={request.policy}
            onChange={(policy) => onChange({ ...request, policy: policy === "ISOLATE" ? "ISOLATE" : "NONE" })}
            choices={[
              { value: "NONE", label: "may share a provider" },
              { value: "ISOLATE", label: "have a provider each" },
            ]}
          />
          <Together sets={request.sameSubtree} onChange={(sameSubtree) => onChange({ ...request, sameSubtree })} error={errorBelow(errors, "sameSubtree")} />
          <Names label="Roots with every trait" names={request.rootRequired} choices={traits} onChange={(rootRequired) => onChange({ ...request, rootRequired })} error={errorBelow(errors, "rootRequired")} />
          <Names label="Roots without the traits" names={request.rootForbidden} choices={traits} onChange={(rootForbidden) => onChange({ ...request, rootForbidden })} error={errorBelow(errors, "rootForbidden")} />
          {request.hosts.length > 0 && (
            <div className="names">
              <span>Requirements on hosts</span>
              <ul className="chips">
                {request.hosts.map((need) => (
                  <li key={need.key + need.requirement} className="chip mono">
                    {need.key} {need.requirement}
                    <Button quiet label={`Remove ${need.key} ${need.requirement}`} onPress={() => onChange({ ...request, hosts: request.hosts.filter((other) => other !== need) })}>
                      ×
                    </Button>
                  </li>
                ))}
              </ul>
            </div>
          )}
        </div>
      </details>
    </div>
  );
}

const errorBelow = (errors: ReadonlyMap<string, string>, path: string): string | undefined => [...errors].find(([field]) => field === path || field.startsWith(path + "[") || field.startsWith(path + "."))?.[1];

/** Sets of suffixes that need one subtree, typed as `_1 _2; _3 _4`. */
function Together({ sets, onChange, error }: { sets: Request["sameSubtree"]; onChange: (sets: Request["sameSubtree"]) => void; error: string | undefined }) {
  const text = sets.map((suffixes) => suffixes.join(" ")).join("; ");
  const [typed, setTyped] = useState(text);
  const [told, setTold] = useState(text);
  if (told !== text) {
    setTold(text);
    setTyped(text);
  }
  const read = (text: string) => text.split(";").flatMap((set) => (set.trim() ? [set.trim().split(/[\s,]+/)] : []));
  return (
    <Field
      label="Same subtree"
      mono
      hint="Suffixes of groups, such as _1 _2. Separate sets with a semicolon."
      value={typed}
      error={error}
      onChange={(text) => {
        const next = read(text);
        setTyped(text);
        setTold(next.map((suffixes) => suffixes.join(" ")).join("; "));
        onChange(next);
      }}
    />
  );
}

interface GroupProps {
  readonly group: Group;
  readonly at: number;
  readonly wrong: ReadonlyMap<string, string>;
  readonly errors: ReadonlyMap<string, string>;
  readonly classes: readonly string[];
  readonly traits: readonly Choice[];
  readonly aggregates: readonly Choice[];
  readonly trees: readonly Choice[];
  readonly onChange: (part: Partial<Group>) => void;
  readonly onRemove: () => void;
}

function GroupForm({ group, at, wrong, errors, classes, traits, aggregates, trees, onChange, onRemove }: GroupProps) {
  const whole = at === 0;
  const name = whole ? "" : ` of group ${group.suffix}`;
  const path = (field: string) => (whole ? field : `groups[${at - 1}].${field}`);
  const amounts = group.resources;
  const edit = (index: number, part: Partial<Group["resources"][number]>) => onChange({ resources: amounts.map((amount, other) => (other === index ? { ...amount, ...part } : amount)) });
  const unknown = amounts.map(({ resourceClass }) => resourceClass).filter((name) => name && !classes.includes(name));
  const choices = [{ value: "", label: "Choose…" }, ...[...classes, ...unknown].map((value) => ({ value, label: value }))];
  return (
    <fieldset className="group">
      <legend>{whole ? "Amounts" : `Group ${group.suffix}`}</legend>
      {!whole && (
        <div className="group-head">
          <Field label={`Suffix${name}`} hidden mono value={group.suffix} onChange={(suffix) => onChange({ suffix })} error={errorBelow(errors, path("suffix"))} />
          <Button quiet label={`Remove group ${group.suffix}`} onPress={onRemove}>
            Remove
          </Button>
        </div>
      )}
      {amounts.map(({ resourceClass, amount }, index) => (
        <div className="amount" key={index}>
          <Select label={`Class ${index + 1}${name}`} hidden value={resourceClass} onChange={(resourceClass) => edit(index, { resourceClass })} choices={choices} />
          <Field label={`Amount ${index + 1}${name}`} hidden type="number" value={amount} onChange={(amount) => edit(index, { amount })} error={wrong.get(`${at}.${index}`) ?? errors.get(path(`resources[${index}].amount`))} />
          <Button quiet label={`Remove amount ${index + 1}${name}`} onPress={() => onChange({ resources: amounts.filter((_, other) => other !== index) })}>
            ×
          </Button>
        </div>
      ))}
      <div className="actions">
        <Button quiet label={`Add an amount${name}`} onPress={() => onChange({ resources: [...amounts, { resourceClass: "", amount: "1" }] })}>
          Add an amount
        </Button>
      </div>
      <Names label={`With every trait${name}`} names={group.requiredAll} choices={traits} onChange={(requiredAll) => onChange({ requiredAll })} error={errorBelow(errors, path("requiredAll"))} />
      <details open={group.forbidden.length > 0 || group.requiredAnySets.length > 0 || group.memberOf.length > 0 || group.inTree !== "" || undefined}>
        <summary>More conditions{name}</summary>
        <div className="group-more">
          {[...group.requiredAnySets, []].map((set, index) => (
            <Names
              key={index}
              label={`With any of the traits${group.requiredAnySets.length > 0 ? ` (${index + 1})` : ""}${name}`}
              names={set}
              choices={traits}
              onChange={(names) => onChange({ requiredAnySets: [...group.requiredAnySets.slice(0, index), ...(names.length > 0 ? [names] : []), ...group.requiredAnySets.slice(index + 1)] })}
              error={errorBelow(errors, path(`requiredAnySets[${index}]`))}
            />
          ))}
          <Names label={`Without the traits${name}`} names={group.forbidden} choices={traits} onChange={(forbidden) => onChange({ forbidden })} error={errorBelow(errors, path("forbidden"))} />
          <Names label={`In any of the aggregates${name}`} names={group.memberOf} choices={aggregates} onChange={(memberOf) => onChange({ memberOf })} error={errorBelow(errors, path("memberOf"))} />
          <Names label={`In the tree${name}`} names={group.inTree ? [group.inTree] : []} choices={trees} onChange={(names) => onChange({ inTree: names.at(-1) ?? "" })} error={errorBelow(errors, path("inTree"))} />
        </div>
      </details>
    </fieldset>
  );
}

/** Fills the builder with the request of a flavor. */
function FromFlavor({ onChange }: { onChange: (request: Request) => void }) {
  const connection = useConnection();
  const asked = useAsk(flavorsDocument, {});
  const [typed, setTyped] = useState("");
  const [filled, setFilled] = useState<{ name: string; flavor?: Flavor; error?: Error }>();
  const flavors = asked.data?.resources.nodes ?? [];
  if (flavors.length === 0) return null;
  const choose = async (name: string) => {
    const chosen = flavors.find((flavor) => flavor.name === name || flavor.uuid === name);
    if (!chosen) return;
    setTyped(chosen.name);
    try {
      const { placementRequest: flavor } = await send(connection, flavorDocument, { uuid: chosen.uuid });
      if (!flavor) return setFilled({ name: chosen.name, error: new Error("The flavor was deleted.") });
      setFilled({ name: chosen.name, flavor });
      onChange(requestFrom(flavor));
    } catch (error) {
      setFilled({ name: chosen.name, error: problemOf(error) });
    }
  };
  const problems = filled?.flavor?.problems ?? [];
  const ignored = filled?.flavor?.ignored ?? [];
  return (
    <div className="names">
      <Combo label="From a flavor" value={typed} onChange={setTyped} onChoose={(name) => void choose(name)} choices={flavors.map(({ name }) => ({ value: name, label: name }))} error={filled?.error?.message} />
      {problems.map(({ key, message }) => (
        <p key={key ?? message} className="error">
          {key} {message}
        </p>
      ))}
      {ignored.length > 0 && (
        <p className="hint" title={ignored.map(({ key }) => key).join(", ")}>
          {count(ignored.length, "key")} of {filled?.name} {ignored.length === 1 ? "asks" : "ask"} for nothing here.
        </p>
      )}
    </div>
  );
}
