// Talk to the server: plain answers, and streams of results (server-sent events over a POST).

const page = Math.random().toString(36).slice(2);
const listeners = new Set();
let alive = true;

export class Refused extends Error {}
export class Lost extends Error {}

// What to show of an error: the server's message, or that the connection is gone; nothing where the page itself gave up.
export function explained(error) {
  if (error.name === "AbortError") return null;
  if (error instanceof Refused) return error.message;
  if (error instanceof Lost) return "The connection was lost.";
  throw error;
}

export function onConnection(listener) {
  listeners.add(listener);
}

function told(isAlive, reason = "") {
  if (isAlive === alive && !reason) return;
  const back = isAlive && !alive;
  alive = isAlive;
  listeners.forEach((listener) => listener(isAlive, back, reason));
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(`api/${path}`, {
      ...options,
      headers: { "content-type": "application/json", "x-page": page },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    told(false);
    throw new Lost("the server does not answer");
  }
  if (response.ok) {
    told(true);
    return response;
  }
  let message = response.statusText;
  try {
    message = (await response.json()).error;
  } catch {
    /* no JSON: the status has to do */
  }
  if (response.status === 403) told(false, message);
  throw new Refused(message);
}

export async function get(path) {
  return (await answered(path, {})).json();
}

export async function post(path, fields) {
  return answered(path, { method: "POST", body: JSON.stringify(fields) });
}

// Call f(result) for every result of a stream. Aborting the signal closes the connection, which ends the work.
export async function stream(path, fields, signal, f) {
  const response = await answered(path, { method: "POST", body: JSON.stringify(fields), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      part = { done: true };
    }
    if (part.done) {
      told(false);
      throw new Lost("the connection was lost");
    }
    text += part.value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (name === "end") return;
      if (name === "failed") throw new Refused(JSON.parse(data).error);
      if (name === "result") f(JSON.parse(data));
    }
  }
}

// Look every now and then whether the server is there, more often while it is not.
export function keepLooking() {
  const look = async () => {
    try {
      await get("alive");
    } catch {
      /* told already */
    }
    setTimeout(look, alive ? 4000 : 1000);
  };
  setTimeout(look, 4000);
}
