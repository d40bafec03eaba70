// The frame of every page: navigation, viewer, and the sign-in.
import { Component, type ComponentType, lazy, type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";

import { Missing } from "./hub/parts";
import { FeedProvider, useLive } from "./live";
import { Failed, Loading, PageHead, type Shown, ShownContext, useTitle } from "./page";
import { unreachable, whenReachable } from "./reachable";
import { areaOf, type Script, scripts } from "./scripts";
import { nameOf, useSession, useViewer } from "./session";
import { SignIn } from "./signin";
import { Button } from "./ui/controls";
import { Guard, useLeaving } from "./unsaved";

/**
 * Returns a page that is shown once its script is loaded. If it is loaded already, the
 * page needs no fallback, for which React would wait 300 ms.
 */
const later = <Pages, Props extends object>(script: Script<Pages>, pick: (pages: Pages) => ComponentType<Props>) =>
  lazy(() => {
    const module = (pages: Pages) => ({ default: pick(pages) });
    const { loaded } = script;
    if (loaded) return { then: (done: (of: ReturnType<typeof module>) => void) => done(module(loaded)) } as unknown as Promise<ReturnType<typeof module>>;
    return script().then(module, () => {
      throw new ScriptError(unreachable);
    });
  });

/** The script of a page could not be loaded. */
class ScriptError extends Error {}

const OverviewPage = later(scripts.overview, (pages) => pages.OverviewPage);
const Catalogue = later(scripts.definitions, (pages) => pages.Catalogue);
const NewNamespacePage = later(scripts.definitions, (pages) => pages.NewNamespacePage);
const ImportPage = later(scripts.definitions, (pages) => pages.ImportPage);
const NamespacePage = later(scripts.definitions, (pages) => pages.NamespacePage);
const NewPropertyPage = later(scripts.definitions, (pages) => pages.NewPropertyPage);
const PropertyPage = later(scripts.definitions, (pages) => pages.PropertyPage);
const AuditPage = later(scripts.audit, (pages) => pages.AuditPage);
const CapabilitiesPage = later(scripts.capabilities, (pages) => pages.CapabilitiesPage);
const PlacementPage = later(scripts.placement, (pages) => pages.PlacementPage);
const WhatIfPage = later(scripts.whatIf, (pages) => pages.WhatIfPage);
const NewResourcePage = later(scripts.resources, (pages) => pages.NewResourcePage);
const ResourceTable = later(scripts.resources, (pages) => pages.ResourceTable);
const ResourcePage = later(scripts.resources, (pages) => pages.ResourcePage);
const ProviderPage = later(scripts.hub, (pages) => pages.ProviderPage);
const ConsumerPage = later(scripts.hub, (pages) => pages.ConsumerPage);

/** Shows errors of a page. After a script could not be loaded, the page reloads once the server answers. */
class Unloaded extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {};
  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
  override render() {
    const { error } = this.state;
    if (error instanceof ScriptError) return <Unreachable />;
    return error ? <Failed error={error} retry={() => location.reload()} /> : this.props.children;
  }
}

function Unreachable() {
  useEffect(() => whenReachable(() => location.reload()), []);
  return <Failed error={new Error(unreachable)} retry={() => location.reload()} />;
}

export function Shell() {
  const { state } = useSession();
  const [shown, show] = useState<Shown>();
  if (state.kind !== "open")
    return (
      <Frame>
        <SignIn />
      </Frame>
    );
  return (
    <FeedProvider token={state.token} latest={state.latest} key={state.token}>
      <ShownContext.Provider value={show}>
        <Guard>
          <Frame shown={shown}>
            <Pages />
          </Frame>
        </Guard>
      </ShownContext.Provider>
    </FeedProvider>
  );
}

function Pages() {
  const [location] = useLocation();
  const area = areaOf(location);
  return (
    <Unloaded key={area}>
      <Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/" component={OverviewPage} />
          <Route path="/definitions" component={Catalogue} />
          <Route path="/new-namespace" component={NewNamespacePage} />
          <Route path="/import" component={ImportPage} />
          <Route path="/definitions/:namespace">{({ namespace }) => <NamespacePage name={decodeURIComponent(namespace)} />}</Route>
          <Route path="/definitions/:namespace/new-property">{({ namespace }) => <NewPropertyPage namespace={decodeURIComponent(namespace)} />}</Route>
          <Route path="/definitions/:namespace/properties/:name">{({ namespace, name }) => <PropertyPage namespace={decodeURIComponent(namespace)} name={decodeURIComponent(name)} />}</Route>
          <Route path="/audit" component={AuditPage} />
          <Route path="/capabilities" component={CapabilitiesPage} />
          <Route path="/placement" component={PlacementPage} />
          <Route path="/placement/what-if" component={WhatIfPage} />
          <Route path="/new-resource" component={NewResourcePage} />
          <Route path="/resources" component={ResourceTable} />
          <Route path="/resources/:uuid">{({ uuid }) => <ResourcePage key={uuid} uuid={uuid} />}</Route>
          <Route path="/providers/:uuid">{({ uuid }) => <ProviderPage key={uuid} uuid={uuid} />}</Route>
          <Route path="/consumers/:uuid">{({ uuid }) => <ConsumerPage key={uuid} uuid={uuid} />}</Route>
          <Route>
            <Nowhere />
          </Route>
        </Switch>
      </Suspense>
    </Unloaded>
  );
}

function Nowhere() {
  useTitle("Not found");
  return (
    <>
      <PageHead title="Not found" />
      <Missing what="page" links={<Link href="/">Overview</Link>} />
    </>
  );
}

function Frame({ shown, children }: { shown?: Shown | undefined; children: ReactNode }) {
  const { state, settings } = useSession();
  const [location] = useLocation();
  const main = useRef<HTMLElement>(null);
  const page = location.split("/")[1];
  const before = useRef(location);
  useEffect(() => {
    if (before.current === location) return;
    before.current = location;
    main.current?.focus({ preventScroll: true }); // a reader of the screen begins with the new page
    scrollTo(0, 0);
  }, [location]);
  const bar = useRef<HTMLElement>(null);
  useEffect(() => {
    const [of, tab] = [bar.current, bar.current?.querySelector("[aria-current]")];
    if (!of || !tab) return;
    const [all, here] = [of.getBoundingClientRect(), tab.getBoundingClientRect()];
    of.scrollLeft += here.left - all.left - (all.width - here.width) / 2; // a phone shows a part of the bar; scrollIntoView would move the first stop of Tab
  }, [page, state.kind]);
  const viewer = state.kind === "open" ? state.viewer : undefined;
  return (
    <div className="frame">
      <a className="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the page
      </a>
      <header className="bar">
        <Link href="/" className="mark">
          <Mark />
          Cadastre
        </Link>
        {viewer && (
          <nav aria-label="Pages" ref={bar}>
            <Tab href="/" name="Overview" here={page === ""} />
            {viewer.namespaces && <Tab href="/definitions" name="Definitions" here={["definitions", "new-namespace", "import"].includes(page ?? "")} />}
            {viewer.resources && <Tab href="/resources" name="Resources" here={page === "resources" || page === "new-resource"} />}
            {viewer.resources && viewer.namespaces && <Tab href="/capabilities" name="Capabilities" here={page === "capabilities"} />}
            {viewer.placement && <Tab href="/placement" name="Placement" here={["placement", "providers", "consumers"].includes(page ?? "")} />}
            {viewer.audit && <Tab href="/audit" name="Audit" here={page === "audit"} />}
          </nav>
        )}
        <div className="bar-end">
          {shown && settings.ide && <ShowQuery shown={shown} />}
          {viewer && <Who />}
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

const Mark = () => (
  <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
    <path d="M1 1h8v5H1zM11 1h8v11h-8zM1 8h8v11H1zM11 14h8v5h-8z" fill="currentColor" />
  </svg>
);

function Tab({ href, name, here }: { href: string; name: string; here: boolean }) {
  const load = () => void scripts[areaOf(href)]().catch(() => {}); // the page shows the error when it is opened
  return (
    <Link href={href} className="tab" aria-current={here ? "page" : undefined} onPointerEnter={load} onFocus={load}>
      {name}
    </Link>
  );
}

function ShowQuery({ shown }: { shown: Shown }) {
  const address = useMemo(() => {
    const named = new URLSearchParams({ query: shown.query });
    if (Object.keys(shown.variables).length > 0) named.set("variables", JSON.stringify(shown.variables, null, 2));
    return "/#" + named.toString();
  }, [shown]);
  return (
    <a className="quiet" href={address} title="Open the query of this page in the IDE">
      Show the query
    </a>
  );
}

/** Shows the viewer and, in a demo, its other roles. */
function Who() {
  const viewer = useViewer();
  const { settings, token, use, signOut } = useSession();
  const { roles } = settings;
  const leaving = useLeaving();
  const live = useLive();
  const said = typeof live === "object" ? `Not live: ${live.refused}. Reload the page, or sign in again.` : live ? "Live: changes appear automatically" : "Not live";
  return (
    <div className="who">
      <span className="live" data-live={typeof live === "object" ? "refused" : live} role="img" aria-label={said} title={said} />
      {typeof live === "object" && (
        <span className="live-refused" role="status">
          not live: refused
        </span>
      )}
      <span className="who-name">you are {nameOf(viewer)}</span>
      {roles.length > 0 ? (
        <select aria-label="Role" value={token} onChange={({ target: { value } }) => leaving(() => use(value))}>
          {!roles.some((role) => role.token === token) && <option value={token}>own token</option>}
          {roles.map((role) => (
            <option key={role.name} value={role.token}>
              {role.name}
            </option>
          ))}
        </select>
      ) : (
        <Button quiet onPress={() => leaving(signOut)}>
          Sign out
        </Button>
      )}
    </div>
  );
}
