// Unsent answers: stored on the device until the server has acknowledged each one, and sent one by one, in order.
// A question's id and attempt are the key of an answer: it counts once, however often it is sent.

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30000;

export const keyOf = (each) => `${each.question ?? each.id}/${each.attempt}`;

// Two tabs of one person share the waiting answers; only one of them sends at a time.
const alone = (name, work) => (navigator.locks ? navigator.locks.request(name, work) : work());

const PASSING = new Set([403, 408, 425, 429]);
const willPass = (status) => status >= 500 || PASSING.has(status);

export class Outbox {
  #name;
  #send;
  #storage;
  #settled;
  #changed;
  #running = null;
  #timer = 0;
  #wait = FIRST_WAIT;
  #memory = [];
  underWay = "";
  trouble = ""; // "", "offline" or "forgotten"

  // `send(answer)` gives {status, body} or throws; `settled(answer, reply)` is called once per answer.
  constructor(name, send, { settled = () => {}, changed = () => {}, storage = null } = {}) {
    this.#name = name;
    this.#send = send;
    this.#settled = settled;
    this.#changed = changed;
    this.#storage = storage;
  }

  get waiting() {
    try {
      if (this.#storage) return JSON.parse(this.#storage.getItem(this.#name) ?? "[]");
    } catch { /* what can't be read is not there */ }
    return this.#memory;
  }

  #keep(answers) {
    this.#memory = answers;
    try {
      if (answers.length) this.#storage?.setItem(this.#name, JSON.stringify(answers));
      else this.#storage?.removeItem(this.#name);
    } catch {
      this.#storage = null; // full or forbidden: this tab's memory has to do
    }
  }

  has(question) {
    return this.waiting.some((each) => keyOf(each) === keyOf(question));
  }

  add(answer) {
    if (this.has(answer)) return;
    this.#keep([...this.waiting, answer]);
    this.#changed();
    this.pump();
  }

  // Remove and return an answer that has not been sent.
  takeBack(question) {
    const found = this.waiting.find((each) => each.question === question && keyOf(each) !== this.underWay);
    if (found) this.#drop(found);
    return found ?? null;
  }

  #drop(answer) {
    this.#keep(this.waiting.filter((each) => keyOf(each) !== keyOf(answer)));
    this.#changed();
  }

  // Send all waiting answers; the promise resolves when no request is in progress.
  pump() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#running ??= alone(this.#name, () => this.#run()).finally(() => {
      this.#running = null;
      this.#changed();
      if (this.waiting.length && !this.#timer && !this.trouble) this.pump();
    });
    return this.#running;
  }

  async #run() {
    for (let first; (first = this.waiting[0]); ) {
      this.underWay = keyOf(first);
      let reply = null;
      try {
        reply = await this.#send(first);
      } catch { /* no network: as if the server were away */ }
      this.underWay = "";
      if (!reply || willPass(reply.status)) return this.#retry(reply?.status);
      this.#wait = FIRST_WAIT;
      this.trouble = "";
      this.#drop(first);
      this.#settled(first, reply);
    }
    this.trouble = ""; // nothing waits: another tab may have sent it
  }

  #retry(status) {
    this.trouble = status === 403 ? "forgotten" : "offline";
    this.#timer = setTimeout(() => this.pump(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
    this.#changed();
  }
}
