// Sign-in by OpenID Connect: the authorization code flow with PKCE, renewal without the
// user, and sign-out. The tokens are in sessionStorage, so they end with the tab.
import * as oauth from "oauth4webapi";

/** The issuer, and the console as its client. */
export interface Provider {
  readonly issuer: string;
  readonly clientId: string;
  readonly scope: string;
  readonly audience: string;
}

/** Tokens of the issuer. */
interface Grant {
  readonly token: string;
  readonly expires: number; // milliseconds
  readonly refresh: string | undefined;
  readonly id: string;
}

/** The values that must be the same when the user comes back. */
interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly from: string; // the address to return to
}

const granted = "cadastre.oidc";
const attempted = "cadastre.oidc.attempt";
const console_ = `${location.origin}/console`;
const signedIn = `${console_}/signed-in`;
const framePatience = 15_000; // milliseconds

const read = <Value>(name: string): Value | undefined => JSON.parse(sessionStorage.getItem(name) ?? "null") ?? undefined;

/** Returns the grant of this tab. */
const grantOf = (): Grant | undefined => read<Grant>(granted);

const of = (provider: Provider) => ({
  client: { client_id: provider.clientId } as oauth.Client,
  insecure: { [oauth.allowInsecureRequests]: provider.issuer.startsWith("http:") },
  // An issuer that serves several audiences knows them by their URLs.
  resource: provider.audience.includes("://") ? { resource: provider.audience } : undefined,
});

async function discover(provider: Provider): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(provider.issuer);
  return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, of(provider).insecure));
}

/** Returns the address at which the issuer asks the user, and what to compare afterwards. */
async function ask(provider: Provider, from: string, more: Record<string, string> = {}): Promise<{ address: string; attempt: Attempt }> {
  const server = await discover(provider);
  if (!server.authorization_endpoint) throw new Error("The issuer has no authorization endpoint.");
  const attempt: Attempt = { state: oauth.generateRandomState(), nonce: oauth.generateRandomNonce(), verifier: oauth.generateRandomCodeVerifier(), from };
  const address = new URL(server.authorization_endpoint);
  const asked = {
    response_type: "code",
    client_id: provider.clientId,
    redirect_uri: signedIn,
    scope: provider.scope,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: "S256",
    ...of(provider).resource,
    ...(provider.scope.split(" ").includes("offline_access") && { prompt: "consent" }),
    ...more,
  };
  for (const [name, value] of Object.entries(asked)) address.searchParams.set(name, value);
  return { address: address.href, attempt };
}

/** Leaves the console for the login page of the issuer. */
export async function signIn(provider: Provider): Promise<void> {
  const { address, attempt } = await ask(provider, location.pathname + location.search);
  sessionStorage.setItem(attempted, JSON.stringify(attempt));
  location.assign(address);
}

/** Completes a sign-in at the address to which the issuer sent the user; returns the token and where the user was. */
export async function complete(provider: Provider): Promise<{ token: string; from: string }> {
  const attempt = read<Attempt>(attempted);
  sessionStorage.removeItem(attempted);
  if (!attempt) throw new Error("This tab has not begun to sign in.");
  const { token } = await exchange(provider, attempt, new URL(location.href));
  return { token, from: attempt.from };
}

async function exchange(provider: Provider, attempt: Attempt, address: URL): Promise<Grant> {
  const { client, insecure, resource } = of(provider);
  const server = await discover(provider);
  const parameters = oauth.validateAuthResponse(server, client, address, attempt.state);
  const options = { ...insecure, ...(resource && { additionalParameters: resource }) };
  const response = await oauth.authorizationCodeGrantRequest(server, client, oauth.None(), parameters, signedIn, attempt.verifier, options);
  return keep(await oauth.processAuthorizationCodeResponse(server, client, response, { expectedNonce: attempt.nonce, requireIdToken: true }));
}

/** Keeps the tokens of the issuer. The server reads JSON Web Tokens: the access token if it is one, otherwise the ID token. */
function keep(response: oauth.TokenEndpointResponse, before?: Grant): Grant {
  const readable = response.access_token.split(".").length === 3;
  const id = response.id_token ?? before?.id ?? "";
  const claims = oauth.getValidatedIdTokenClaims(response); // of a new ID token, which a renewal can lack
  if (!readable && !claims) throw new Error("The issuer gave no token that the server reads.");
  const ends = readable ? Date.now() + (response.expires_in ?? 300) * 1000 : (claims?.exp ?? 0) * 1000;
  const grant = { token: readable ? response.access_token : id, expires: ends, refresh: response.refresh_token ?? before?.refresh, id };
  sessionStorage.setItem(granted, JSON.stringify(grant));
  return grant;
}

/** Asks for the next token: with the refresh token, or in a hidden frame by the issuer's own session. */
async function renew(provider: Provider, grant: Grant): Promise<Grant> {
  if (!grant.refresh) return renewInFrame(provider);
  const { client, insecure, resource } = of(provider);
  const server = await discover(provider);
  const options = { ...insecure, ...(resource && { additionalParameters: resource }) };
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), grant.refresh, options);
  return keep(await oauth.processRefreshTokenResponse(server, client, response), grant);
}

async function renewInFrame(provider: Provider): Promise<Grant> {
  const { address, attempt } = await ask(provider, "", { prompt: "none" });
  const frame = document.createElement("iframe");
  frame.hidden = true;
  frame.title = "Renewal of the session";
  const stop = new AbortController();
  try {
    const back = await new Promise<string>((resolve, reject) => {
      setTimeout(() => reject(new Error("The issuer did not answer.")), framePatience);
      const told = ({ origin, source, data }: MessageEvent) => origin === location.origin && source === frame.contentWindow && resolve(String(data));
      addEventListener("message", told, { signal: stop.signal });
      frame.src = address;
      document.body.append(frame);
    });
    return await exchange(provider, attempt, new URL(back));
  } finally {
    stop.abort();
    frame.remove();
  }
}

/** Whether a failure is the answer of the issuer, which a retry would not change. */
const isAnswer = (error: unknown): boolean => error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError;

/**
 * Renews a token of the issuer when a quarter of its time, or a minute, is left. Calls
 * ended at the end of a token that could not be renewed. Returns a function that stops it.
 */
export function keepRenewed(provider: Provider, token: string, renewed: (token: string) => void, ended: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;
  const schedule = (grant: Grant) => {
    const left = grant.expires - Date.now();
    timer = setTimeout(() => void run(grant), Math.max(0, left - Math.min(60_000, left / 4)));
  };
  const run = async (grant: Grant) => {
    try {
      const next = await renew(provider, grant);
      if (stopped) return;
      renewed(next.token);
      schedule(next);
    } catch (error) {
      if (stopped) return;
      const left = grant.expires - Date.now();
      if (left <= 0) return ended();
      timer = setTimeout(() => void (isAnswer(error) ? ended() : run(grant)), isAnswer(error) ? left : Math.min(left, 5000));
    }
  };
  const grant = grantOf();
  if (grant?.token === token) schedule(grant);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/** Forgets the tokens and leaves the console to end the issuer's session, if the issuer can do that. */
export async function signOut(provider: Provider): Promise<void> {
  const grant = grantOf();
  sessionStorage.removeItem(granted);
  if (!grant) return;
  const { end_session_endpoint: end } = await discover(provider);
  if (!end) return;
  const address = new URL(end);
  const told = { id_token_hint: grant.id, client_id: provider.clientId, post_logout_redirect_uri: console_ };
  for (const [name, value] of Object.entries(told)) address.searchParams.set(name, value);
  location.assign(address.href);
}

/** Says why a sign-in failed. */
export function reasonOf(error: unknown): string {
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError) return `The issuer refused it: ${error.error_description ?? error.error}.`;
  if (error instanceof TypeError) return "The issuer cannot be reached.";
  return error instanceof Error ? error.message : String(error);
}
