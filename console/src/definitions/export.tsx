// Export of a namespace as a definition file.
import { CadastreError } from "@cadastre/client";
import { useState } from "react";
import { useClient } from "urql";

import { graphql } from "../generated";
import { errorOf } from "../page";
import { Button } from "../ui/controls";
import { Note } from "../ui/show";

const exportDocument = graphql(`
  query ExportNamespace($name: String!) {
    exportNamespaces(names: [$name])
  }
`);

/** Saves a string as a file. */
export function keep(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Returns a name that is valid on every file system. */
const fileOf = (namespace: string) => namespace.replace(/[^\p{L}\p{N}._-]+/gu, "-") + ".json";

export function Export({ name }: { name: string }) {
  const client = useClient();
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Error>();
  const run = async () => {
    setBusy(true);
    const { data, error } = await client.query(exportDocument, { name }, { requestPolicy: "network-only" }).toPromise();
    setBusy(false);
    setFailed(error && errorOf(error));
    const text = data?.exportNamespaces[0];
    if (text !== undefined) keep(text, fileOf(name));
  };
  const large = failed instanceof CadastreError && failed.code === "QUERY_TOO_COMPLEX";
  return (
    <>
      <Button disabled={busy} onPress={() => void run()}>
        Export
      </Button>
      {failed && (
        <Note>
          {failed.message} {large && <code>cadastre metadefs export "{name}"</code>}
        </Note>
      )}
    </>
  );
}
