// Server-sent events over fetch, because EventSource cannot send the token in a header.
//
// The parser follows the event stream format of the HTML standard: lines may be cut anywhere between two chunks.

export interface Message {
  id: string;
  event: string;
  data: string;
}

export class SseParser {
  #rest = "";
  #data: string[] = [];
  #event = "";
  #id = "";

  /** Take a piece of text, and return the messages that it completes. */
  push(text: string): Message[] {
    const found: Message[] = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = this.#line(line);
      if (message !== null) found.push(message);
    }
    return found;
  }

  #line(line: string): Message | null {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null; // a comment: the server keeps the connection alive
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    if (field === "event") this.#event = value;
    if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #dispatch(): Message | null {
    const data = this.#data.join("\n");
    const event = this.#event || "message";
    this.#event = "";
    const isEmpty = this.#data.length === 0;
    this.#data = [];
    return isEmpty ? null : { id: this.#id, event, data };
  }
}
