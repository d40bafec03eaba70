// A page of three screens. Its address behind the # says which one is shown.
import { webSocket } from "@cadastre/client";
import { exchanges } from "@cadastre/client/urql";
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Client, Provider } from "urql";

import { Capacity } from "./capacity";
import { Editor } from "./editor";
import { List } from "./list";

const url = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:8080/graphql";
const token = (sessionStorage["token"] ??= prompt("The token to ask with; of a demo, demo-member") ?? "") as string;
const client = new Client({ url, preferGetMethod: false, fetchOptions: { headers: { "X-Auth-Token": token } }, exchanges: exchanges({ stream: webSocket({ url, token }).stream }) });

function App() {
  const [place, setPlace] = useState(location.hash.slice(1));
  useEffect(() => void addEventListener("hashchange", () => setPlace(location.hash.slice(1))), []);
  return (
    <Provider value={client}>
      <nav>
        <a href="#">Resources</a> <a href="#capacity">Capacity</a>
      </nav>
      <main>{place === "capacity" ? <Capacity /> : place ? <Editor key={place} uuid={place} /> : <List />}</main>
    </Provider>
  );
}

createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
