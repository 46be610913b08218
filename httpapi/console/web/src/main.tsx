// The console: which view the URL names, and who is logged in.
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { beforeChanges, onRefused, type Problem } from "./api";
import { dropDrafts } from "./draft";
import { asProblem, useLoad } from "./load";
import { ServerNavigation } from "./navigation";
import { Dialog, Name, Refusal, Title } from "./parts";
import { link, usePlace } from "./route";
import { sameAccount } from "./same_account";
import { LoginForm, logOut, whoAmI, type User } from "./session";
import "uplot/dist/uPlot.min.css"; // of a view that is loaded later: styles are one file
import "./style.css";
import { View } from "./views";

function Console() {
  const place = usePlace();
  const session = useLoad(() => whoAmI(), []);
  const [user, setUser] = useState<User>();
  const [asked, setAsked] = useState(false); // a log-in is wanted, by the server or the person
  useEffect(() => {
    if (session.value) setUser(session.value);
  }, [session.value]);
  const name = user?.name;
  // An account that may not do something is told so by the view; only one that the server does not
  // know any more, or none at all, is asked to log in.
  useLayoutEffect(() => onRefused(() => {
    const at = location.hash; // a view that has gone meanwhile asks for nothing
    void whoAmI().then((now) => now.name === null && location.hash === at && setAsked(true), () => {});
  }), []);
  useLayoutEffect(() => (name === undefined ? undefined : beforeChanges(() => sameAccount(name))), [name]); // before a view can change anything
  useLayoutEffect(() => { // before somebody asks to log in
    if (name === null) setAsked(false); // another view may be open to all
  }, [place, name]);

  const loggedIn = (now: User) => {
    setAsked(false);
    setUser(now);
  };
  const left = useRef<string | null>(null); // who has logged out
  const [problem, setProblem] = useState<Problem>();
  const leave = async () => {
    setProblem(undefined);
    try {
      await logOut();
      const now = await whoAmI();
      left.current = user?.name ?? null;
      setUser(now); // a certificate or a proxy may still say who it is
    } catch (e) {
      setProblem(asProblem(e));
    }
  };
  useEffect(() => {
    if (name === null && left.current !== null) dropDrafts(left.current); // views are gone, which keep some
    left.current = null;
  }, [name]);
  const expired = asked && user !== undefined && user.name !== null;
  const barred = asked && user !== undefined && user.name === null;
  return (
    <>
      <header class="top">
        <a class="brand" href={link([])}>Divan</a>
        <ServerNavigation place={place} user={user} />
        <div class="account">
          {user?.name && (
            <>
              <Name of={user.name} />
              <button type="button" onClick={() => void leave()}>Log out</button>
            </>
          )}
          {user && !user.name && !barred && <button type="button" onClick={() => setAsked(true)}>Log in</button>}
        </div>
      </header>
      {session.problem && <main><Title text="Divan">Divan</Title><Refusal of={session.problem} again={session.again} /></main>}
      {problem && <Refusal of={problem} again={() => void leave()} />}
      {barred && (
        <main class="narrow">
          <Title text="Log in">Log in</Title>
          <LoginForm done={loggedIn} />
        </main>
      )}
      {user && !barred && <View key={user.name ?? ""} place={place} user={user} />}
      {expired && (
        <Dialog title="Your session has ended" close={() => setAsked(false)}>
          <p>What you have written is still here. Log in again to go on.</p>
          <LoginForm done={loggedIn} name={user.name ?? undefined} />
        </Dialog>
      )}
    </>
  );
}

render(<Console />, document.getElementById("console")!);
