// Has the tools of clients read the schema of the server at argv[2], with the token argv[3], and compile
// the operations in the files argv[4...] with it: graphql-js, relay-compiler, and
// the client preset of graphql-codegen, whose output is type-checked together
// with the pages in relay/ and codegen/, all as docs/clients.md says. It prints as JSON what each of them had
// to say, the empty text where all is well.
"use strict";
const { execFileSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const graphql = require("graphql");

const [, , url, token, ...files] = process.argv;
const docs = fs.readFileSync(path.join(__dirname, "../../../docs/clients.md"), "utf8");

// settings returns the configuration that the page for clients shows under a
// heading.
const settings = (heading) => new RegExp("\n## " + heading + "\n[^]*?```json\n([^]*?)```").exec(docs)[1];

// introspect returns what the server answers about its schema.
async function introspect() {
  const query = graphql.getIntrospectionQuery({ schemaDescription: true, specifiedByUrl: true, directiveIsRepeatable: true, inputValueDeprecation: true, oneOf: true });
  const response = await fetch(url + "/graphql", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Auth-Token": token },
    body: JSON.stringify({ query }),
  });
  return (await response.json()).data;
}

// graphqlJS checks that the text means the same after it was printed, and the
// same as the answer of the server's introspection.
function graphqlJS(sdl, introspection) {
  const schema = graphql.buildSchema(sdl);
  const complaints = graphql.validateSchema(schema).map(String);
  const canonical = (of) => graphql.printSchema(graphql.lexicographicSortSchema(of));
  if (graphql.printSchema(graphql.buildSchema(graphql.printSchema(schema))) !== graphql.printSchema(schema))
    complaints.push("printSchema and buildSchema do not agree");
  const printed = graphql.print(graphql.parse(sdl));
  if (graphql.print(graphql.parse(printed)) !== printed || canonical(graphql.buildSchema(printed)) !== canonical(schema))
    complaints.push("print and parse do not agree");
  const marks = (text) => (text.match(/@semanticNonNull/g) || []).length;
  if (!schema.description || marks(printed) < 10) complaints.push("the description or the marks are lost");
  const shown = graphql.buildClientSchema(introspection);
  if (canonical(shown) !== canonical(schema)) complaints.push("introspection differs from the text");
  for (const file of files)
    complaints.push(...graphql.validate(schema, withFragments(file), graphql.specifiedRules.filter((rule) => rule !== graphql.NoUnusedFragmentsRule)).map((error) => `${file}: ${error}`));
  return complaints.join("\n");
}

// withFragments returns the document of a file, with the fragments of those beside it.
function withFragments(file) {
  const parsed = (of) => graphql.parse(fs.readFileSync(of, "utf8"));
  const beside = files.filter((other) => other !== file && path.dirname(other) === path.dirname(file));
  const fragments = beside.flatMap((other) => parsed(other).definitions).filter((one) => one.kind === graphql.Kind.FRAGMENT_DEFINITION);
  return { kind: graphql.Kind.DOCUMENT, definitions: [...parsed(file).definitions, ...fragments] };
}

// run runs a program of node_modules in a folder and returns what it printed if
// it failed.
function run(folder, program, ...args) {
  try {
    execFileSync(process.execPath, [path.join(__dirname, "node_modules", program), ...args], { cwd: folder, stdio: "pipe" });
    return "";
  } catch (failed) {
    return `${failed.stdout}${failed.stderr}`;
  }
}

// application makes a folder with a schema and the pages of a client.
function application(name, sdl, heading) {
  const folder = path.join(temporary, name);
  fs.cpSync(path.join(__dirname, name), path.join(folder, "src"), { recursive: true });
  fs.symlinkSync(path.join(__dirname, "node_modules"), path.join(folder, "node_modules"));
  fs.writeFileSync(path.join(folder, "schema.graphql"), sdl);
  fs.writeFileSync(path.join(folder, "package.json"), "{}");
  fs.writeFileSync(path.join(folder, "settings.json"), settings(heading));
  const compilerOptions = { strict: true, noEmit: true, target: "es2022", module: "esnext", moduleResolution: "bundler", skipLibCheck: true };
  fs.writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
  return folder;
}

// Relay wants a fragment that may not match to have a name in the answer.
const alias = { kind: graphql.Kind.DIRECTIVE, name: { kind: graphql.Kind.NAME, value: "alias" } };
const aliased = (document) =>
  graphql.visit(document, {
    InlineFragment: (of) =>
      of.selectionSet.selections.some(({ kind }) => kind === graphql.Kind.FRAGMENT_SPREAD)
        ? { ...of, selectionSet: { ...of.selectionSet, selections: of.selectionSet.selections.map((one) => (one.kind === graphql.Kind.FRAGMENT_SPREAD ? { ...one, directives: [alias] } : one)) } }
        : undefined,
  });

// relay names operations after their module, as it wants them.
function relay(sdl) {
  const folder = application("relay", sdl, "Relay");
  for (const [index, file] of files.entries()) {
    const document = fs
      .readFileSync(file, "utf8")
      .replace(/^#.*\n|^ +#.*\n/gm, "")
      .replace(/^(query|mutation|subscription) (\w+)/gm, (_, kind, name) => `${kind} document${index}${name}${kind[0].toUpperCase()}${kind.slice(1)}`)
      .replace(/\\/g, "\\\\");
    const definitions = aliased(graphql.parse(document)).definitions.map((definition) => "graphql`\n" + graphql.print(definition).replace(/`/g, "\\`") + "\n`;\n");
    fs.writeFileSync(path.join(folder, "src", `document${index}.ts`), 'import { graphql } from "relay-runtime";\n' + definitions.join(""));
  }
  return run(folder, "relay-compiler/cli.js", "settings.json") || run(folder, "typescript/bin/tsc");
}

function codegen(sdl) {
  const folder = application("codegen", sdl, "graphql-codegen");
  for (const [index, file] of files.entries()) fs.copyFileSync(file, path.join(folder, "src", `document${index}.graphql`));
  return run(folder, "@graphql-codegen/cli/esm/bin.js", "--config", "settings.json") || run(folder, "typescript/bin/tsc");
}

const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "clients-"));

async function main() {
  const sdl = await (await fetch(url + "/schema.graphql")).text();
  const introspection = await introspect(); // before the work, while the connection is open
  const said = { "graphql-js": graphqlJS(sdl, introspection), relay: relay(sdl), codegen: codegen(sdl) };
  process.stdout.write(JSON.stringify(said));
}

main()
  .catch((error) => {
    process.stderr.write(String(error.stack) + "\n");
    process.exitCode = 1;
  })
  .finally(() => fs.rmSync(temporary, { recursive: true }));
