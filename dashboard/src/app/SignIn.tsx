// Who comes without a cookie gives the token that was printed when the manager started.

import { useState, type FormEvent, type ReactNode } from "react";
import { post, RequestError } from "../client/request";
import { Mark } from "../ui/icons";

export function SignIn({ onSignedIn }: { onSignedIn: () => void }): ReactNode {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await post("/api/session", { token: token.trim() });
      onSignedIn();
    } catch (error) {
      setProblem(error instanceof RequestError ? error.message : "That did not work.");
      setBusy(false);
    }
  };
  return (
    <main className="signin">
      <form className="card stack" onSubmit={(event) => void send(event)}>
        <div className="brand"><Mark /> unlinkabledfl</div>
        <h1>Sign in</h1>
        <p className="soft">
          This manager runs experiments on its machine, so it asks who you are. The token was printed in the terminal
          when <code>unlinkabledfl serve</code> started.
        </p>
        <div>
          <label htmlFor="token">Token</label>
          <input id="token" type="password" autoComplete="current-password" required autoFocus value={token} aria-describedby="token-wrong" aria-invalid={problem !== null} onChange={(event) => setToken(event.target.value)} />
          <p className="mistake" id="token-wrong" role="alert">{problem}</p>
        </div>
        <button type="submit" className="button primary" disabled={isBusy || token.trim() === ""}>{isBusy ? "Signing in …" : "Sign in"}</button>
      </form>
    </main>
  );
}
