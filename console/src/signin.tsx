// The page on which users sign in, by what the server offers: OpenID Connect, Keystone,
// a role of a demo, or a token.
import { type FormEvent, type ReactNode, useState } from "react";

import { remember } from "./opening";
import { useTitle } from "./page";
import { unreachable } from "./reachable";
import { useSession } from "./session";
import { Button, Field } from "./ui/controls";

export function SignIn() {
  const { state, use, retry, settings } = useSession();
  const { roles, oidc, keystone, ide } = settings;
  const [pastes, setPastes] = useState(false);
  useTitle("Sign in");
  if (state.kind === "asking") return <div className="sign-in" role="status" aria-label="Signing in" />;
  if (state.kind === "unreachable")
    return (
      <div className="state failed" role="alert">
        <h1>Not connected</h1>
        <p>{state.message}</p>
        <Button onPress={retry}>Try again</Button>
      </div>
    );
  const others = oidc !== null || keystone;
  return (
    <div className="sign-in">
      <h1>Sign in</h1>
      {state.kind === "refused" && others && <Refused>{state.message}</Refused>}
      {oidc && <ByOpenID />}
      {keystone && <ByKeystone />}
      {others && !pastes ? (
        <Button quiet onPress={() => setPastes(true)}>
          Paste a token instead
        </Button>
      ) : (
        <ByToken hint={`The browser keeps the token until you close the tab${ide ? ", and shares it with the IDE" : ""}.`} refused={state.kind === "refused" && !others ? state.message : undefined} />
      )}
      {roles.length > 0 && (
        <p className="hint">
          This is a demo. Try it as{" "}
          {roles.map((role) => (
            <Button key={role.name} quiet onPress={() => use(role.token)}>
              {role.name}
            </Button>
          ))}
        </p>
      )}
    </div>
  );
}

const Refused = ({ children }: { children: ReactNode }) => (
  <p className="error" role="alert">
    {children}
  </p>
);

/** Runs a sign-in, and says why it failed. */
function useAttempt(run: () => Promise<void>): { busy: boolean; error: string | undefined; send: () => void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const send = () => {
    setBusy(true);
    setError(undefined);
    run().catch((error: unknown) => {
      setBusy(false);
      setError(error instanceof Error ? error.message : String(error));
    });
  };
  return { busy, error, send };
}

function ByOpenID() {
  const { oidc } = useSession().settings;
  const { busy, error, send } = useAttempt(async () => {
    if (!oidc) return;
    const { signIn, reasonOf } = await import("./oidc");
    remember(""); // the server does not know the token
    await signIn(oidc).catch((error: unknown) => Promise.reject(new Error(reasonOf(error))));
  });
  return (
    <>
      {error && <Refused>{error}</Refused>}
      <Button primary disabled={busy} onPress={send}>
        {`Sign in at ${new URL(oidc?.issuer ?? location.href).host}`}
      </Button>
    </>
  );
}

function ByKeystone() {
  const { use, settings } = useSession();
  const [given, set] = useState({ user: "", password: "", project: "", domain: "Default" });
  const { busy, error, send } = useAttempt(async () => {
    const response = await fetch("/console/keystone", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) }).catch(() => undefined);
    if (!response) throw new Error(unreachable);
    const answer = (await response.json()) as { token?: string; errors?: { message: string }[] };
    if (!answer.token) throw new Error(`You are not signed in: ${answer.errors?.[0]?.message ?? "the server refused it"}.`);
    use(answer.token);
  });
  const field = (name: keyof typeof given) => ({ value: given[name], onChange: (value: string) => set({ ...given, [name]: value }) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  return (
    <form className="sign-in-form" aria-label="Sign in at the cloud" onSubmit={submit}>
      <Field label="User" autoComplete="username" autoFocus={!settings.oidc} {...field("user")} />
      <Field label="Password" type="password" autoComplete="current-password" {...field("password")} />
      <Field label="Project" {...field("project")} />
      <Field label="Domain" {...field("domain")} />
      {error && <Refused>{error}</Refused>}
      <Button primary={!settings.oidc} type="submit" disabled={busy || !given.user || !given.password || !given.project}>
        Sign in at the cloud
      </Button>
    </form>
  );
}

function ByToken({ hint, refused }: { hint: string; refused: string | undefined }) {
  const { use } = useSession();
  const [given, setGiven] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    if (given.trim()) use(given.trim());
  };
  return (
    <form className="sign-in-form" aria-label="Sign in with a token" onSubmit={send}>
      <p>Paste a token. {hint}</p>
      <Field label="Token" type="password" autoFocus value={given} onChange={setGiven} error={refused} />
      <Button primary type="submit">
        Sign in
      </Button>
    </form>
  );
}
