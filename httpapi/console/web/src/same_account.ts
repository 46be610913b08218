// The session belongs to the browser: another tab may have logged in as somebody else.
import { Problem, demandLogin } from "./api";
import { visible } from "./parts";
import { whoAmI } from "./session";

/** OtherAccount is the refusal to write as somebody else than who began. */
export class OtherAccount extends Problem {
  constructor(readonly now: string, before: string | null) {
    super(0, "other account", `Another tab has logged in as “${visible(now)}” meanwhile: ${before === null ? "before, nobody was logged in" : `this one was opened as “${visible(before)}”`}.`);
  }
}

/** sameAccount throws a Problem unless name is still who is logged in. It asks for a log-in when nobody is any more. */
export async function sameAccount(name: string | null): Promise<void> {
  const now = (await whoAmI()).name;
  if (now === name) return;
  if (now !== null) throw new OtherAccount(now, name);
  demandLogin();
  throw new Problem(401, "unauthorized", "Your session has ended. Log in again.");
}
