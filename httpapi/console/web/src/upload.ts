// One file on its way to the server. XMLHttpRequest tells how much has gone, which fetch does not.
import { Problem, address, demandLogin, problemOf } from "./api";

export interface Uploaded {
  rev: string;
  accepted: boolean; // fewer copies than asked have it
}

/** upload sends a file as the content of an attachment. to is its path with the revision it is added to. */
export function upload(to: string, file: File, signal: AbortSignal, progress: (sent: number) => void): Promise<Uploaded> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    signal.addEventListener("abort", () => request.abort());
    request.upload.onprogress = (e) => progress(e.loaded);
    request.onabort = () => fail(new Problem(0, "cancelled", "It was cancelled."));
    request.onerror = () => fail(new Problem(0, "no answer", "The server cannot be reached, or the connection broke off."));
    request.onload = () => {
      if (request.status === 201 || request.status === 202) {
        const { rev } = JSON.parse(request.responseText) as { rev: string };
        done({ rev, accepted: request.status === 202 });
        return;
      }
      if (request.status === 401) demandLogin();
      fail(problemOf(request.status, request.statusText, request.responseText));
    };
    request.open("PUT", address(to));
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-CouchDB-WWW-Authenticate", "Cookie");
    request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
    request.send(file);
  });
}
