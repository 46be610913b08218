// Who is logged in.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { json, type Problem } from "./api";
import { asProblem } from "./load";
import { Refusal } from "./parts";

export interface User {
  name: string | null; // null: nobody is logged in
  roles: string[];
}

export async function whoAmI(): Promise<User> {
  try {
    return (await json<{ userCtx: User }>("_session")).userCtx;
  } catch (e) {
    if (asProblem(e).status === 401) return { name: null, roles: [] }; // where everything needs an account
    throw e;
  }
}

export async function logOut(): Promise<void> {
  await json("_session", { method: "DELETE" });
}

/** LoginForm asks for name and password. */
export function LoginForm({ done, name: before }: { done: (user: User) => void; name?: string }) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => first.current?.focus(), []); // before anybody types
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget as HTMLFormElement);
    setBusy(true);
    setProblem(undefined);
    try {
      await json("_session", {
        method: "POST",
        body: JSON.stringify({ name: fields.get("name"), password: fields.get("password") }),
      });
      done(await whoAmI());
    } catch (e) {
      setProblem(asProblem(e));
      setBusy(false);
    }
  };
  const none = document.documentElement.dataset.admins === "none";
  return (
    <form class="login" onSubmit={submit}>
      {none && (
        <p class="note">
          This server has no administrator yet. Start it again with <code>--admin NAME:PASSWORD</code>.
        </p>
      )}
      <label>
        Name <input ref={first} name="name" autocomplete="username" required defaultValue={before} spellcheck={false} autocapitalize="none" />
      </label>
      <label>
        Password <input name="password" type="password" autocomplete="current-password" required />
      </label>
      {problem && <Refusal of={problem} />}
      <button class="main" disabled={busy}>Log in</button>
    </form>
  );
}
