// The address that the manager prints holds the token behind the hash, which browsers send to nobody. It is exchanged for
// a cookie, and taken out of the address before anything is drawn, so that it is not copied or kept in the history.

import { post } from "../client/request";

export async function signInByAddress(): Promise<void> {
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (token === null) return;
  window.history.replaceState(null, "", window.location.pathname);
  try {
    await post("/api/session", { token });
  } catch {
    // A wrong token: the page asks for one.
  }
}
