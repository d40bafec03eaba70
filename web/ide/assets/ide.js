// The page around the editor: one token for all tabs, who it stands for, links
// and commands to copy. `settings` is what the server says of itself.
"use strict";

const at = (id) => document.getElementById(id);
const remembered = "cadastre.token";

// The text of an editor of the active tab.
const written = (editor) => document.querySelector(editor + " .CodeMirror").CodeMirror.getValue();
const query = () => written(".graphiql-query-editor");
const variables = () => written(".graphiql-editor-tool").trim();

// The token that all requests are sent with, unless the headers of a tab name
// another. It is kept until the browser's tab is closed.
let token = sessionStorage.getItem(remembered) ?? settings.roles[0]?.token ?? "";

function post(request, options, accept, signal) {
  const headers = { "Content-Type": "application/json", Accept: accept };
  if (token) headers["X-Auth-Token"] = token;
  for (const [name, value] of Object.entries(options?.headers ?? {})) {
    if (/^x-auth-token$|^authorization$/i.test(name)) delete headers["X-Auth-Token"];
    headers[name] = value;
  }
  return fetch("/graphql", { method: "POST", headers, body: JSON.stringify(request), signal });
}

async function send(request, options) {
  const response = await post(request, options, "application/json");
  return response.json();
}

// The events of a subscription, until the editor stops it.
async function* follow(request, options) {
  const stop = new AbortController();
  try {
    const response = await post(request, options, "text/event-stream", stop.signal);
    if (!response.ok) {
      yield await response.json();
      return;
    }
    let text = "";
    for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
        if (event.startsWith("event: next")) yield JSON.parse(data.join("\n"));
        if (event.startsWith("event: complete")) return;
      }
    }
  } finally {
    stop.abort();
  }
}

// Whether what is to run is a subscription.
function isLive(request, options) {
  const operations = (options?.documentAST?.definitions ?? []).filter((definition) => definition.kind === "OperationDefinition");
  const chosen = operations.find((operation) => operation.name?.value === request.operationName) ?? operations[0];
  return chosen?.operation === "subscription";
}

// The query and variables that the address names after its #, if any.
function linked() {
  const named = new URLSearchParams(location.hash.slice(1));
  return { query: named.get("query") ?? undefined, variables: named.get("variables") ?? undefined };
}

const root = ReactDOM.createRoot(at("graphiql"));
const first = linked();

// A new fetcher has the editor ask for the schema again.
function show() {
  root.render(
    React.createElement(
      GraphiQL,
      {
        fetcher: (request, options) => (isLive(request, options) ? follow : send)(request, options),
        query: first.query,
        variables: first.variables,
        defaultTabs: settings.tabs.map((query) => ({ query })),
        defaultQuery: "# Press Ctrl-Space for what can stand here, and Ctrl-Enter to run.\n\n",
        defaultEditorToolsVisibility: false,
        inputValueDeprecation: true,
        schemaDescription: true,
      },
      React.createElement(GraphiQL.Logo, null, ""),
    ),
  );
}

async function login() {
  const who = at("who");
  delete who.dataset.refused;
  if (!token) {
    who.textContent = "paste a token to begin";
    return;
  }
  const asked = token;
  const answer = await send({ query: "{ viewer { userId projectId roles } namespaces { totalCount } }" }).catch((error) => ({
    errors: [{ message: String(error) }],
  }));
  if (asked !== token) return;
  const viewer = answer.data?.viewer;
  if (!viewer) {
    who.dataset.refused = "";
    who.textContent = answer.errors?.[0]?.message ?? "the token is not known";
    return;
  }
  const order = ["ADMIN", "SERVICE", "MEMBER", "READER"];
  const role = order.find((name) => viewer.roles.includes(name))?.toLowerCase() ?? "without a role";
  who.textContent = `you are ${viewer.userId}, ${role} of ${viewer.projectId}`;
  at("empty").hidden = answer.data.namespaces?.totalCount !== 0;
}

function use(given) {
  if (given === token) return;
  token = given;
  sessionStorage.setItem(remembered, token);
  at("token").value = token;
  at("role").value = token;
  login();
  show();
}

// The tag of the schema that the editor has. After an upgrade of the server
// another one is served.
let tag;

async function look() {
  const headers = token ? { "X-Auth-Token": token } : {};
  if (tag) headers["If-None-Match"] = tag;
  const response = await fetch("/schema.graphql", { method: "HEAD", headers }).catch(() => undefined);
  const now = response?.headers.get("ETag");
  if (!now) return;
  if (tag && now !== tag) show();
  tag = now;
}

async function copy(text, told) {
  await navigator.clipboard.writeText(text);
  at("told").textContent = told;
  setTimeout(() => (at("told").textContent = ""), 3000);
}

function link() {
  const named = new URLSearchParams({ query: query() });
  if (variables()) named.set("variables", variables());
  return location.origin + location.pathname + "#" + named;
}

// A command for a shell. It has the token of a demo; others are secret, and come
// from the environment.
function curl() {
  const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
  const request = { query: query() };
  if (variables()) request.variables = JSON.parse(variables());
  const header = settings.roles.some((role) => role.token === token) ? quoted("X-Auth-Token: " + token) : '"X-Auth-Token: $CADASTRE_TOKEN"';
  const live = /^\s*subscription\b/m.test(query()) ? "N -H 'Accept: text/event-stream'" : "";
  return `curl -s${live} ${location.origin}/graphql -H 'Content-Type: application/json' -H ${header} -d ${quoted(JSON.stringify(request))}`;
}

for (const role of settings.roles) at("role").append(new Option(role.name, role.token));
at("roles").hidden = settings.roles.length === 0;
at("role").value = at("token").value = token;
at("role").addEventListener("change", (event) => use(event.target.value));
at("token").addEventListener("change", (event) => use(event.target.value.trim()));
at("login").addEventListener("submit", (event) => {
  event.preventDefault();
  use(at("token").value.trim());
});
at("link").addEventListener("click", () => copy(link(), "The link is copied."));
at("curl").addEventListener("click", () => {
  try {
    copy(curl(), "The command is copied.");
  } catch (error) {
    at("told").textContent = "The variables are no JSON.";
  }
});
addEventListener("focus", look);

show();
login();
look();
