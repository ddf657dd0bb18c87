// Personal options of the page: text size, highlights, keys. Stored on the device.

import { DEFAULTS, Keymap, mayBeKey, nameOf, signOf } from "./keys.js";
import { element } from "./panes.js";

const STORED = "duelpool:options";
const $ = (id) => document.getElementById(id);

export function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}");
  } catch {
    return {};
  }
}

export class Options {
  #words;
  #changed;
  #listening = null; // the action that waits for its key

  constructor(words, changed) {
    const { size = "normal", highlight = true, keysOn = true, together = false, keys = {} } = stored();
    Object.assign(this, { size, highlight, keysOn, together, keymap: new Keymap(keys) });
    this.#words = words;
    this.#changed = changed;
    for (const radio of document.querySelectorAll('input[name="size"]')) {
      radio.checked = radio.value === size;
      radio.addEventListener("change", () => this.set({ size: radio.value }));
    }
    $("option-highlight").addEventListener("change", (event) => this.set({ highlight: event.target.checked }));
    $("option-keys").addEventListener("change", (event) => this.set({ keysOn: event.target.checked }));
    $("keys-reset").addEventListener("click", () => (this.keymap.reset(), this.set({})));
    $("key-list").addEventListener("keydown", (event) => this.#heard(event), true);
    $("options").addEventListener("toggle", () => ((this.#listening = null), this.#draw()));
    this.#draw();
  }

  set(values) {
    Object.assign(this, values);
    const { size, highlight, keysOn, together, keymap } = this;
    try {
      localStorage.setItem(STORED, JSON.stringify({ size, highlight, keysOn, together, keys: keymap.own }));
    } catch { /* then for this page only */ }
    this.#draw();
    this.#changed(values);
  }

  #heard(event) {
    if (!this.#listening || !mayBeKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const action = this.#listening;
    this.#listening = null;
    this.keymap.set(action, nameOf(event));
    this.set({});
    $(`key-${action}`)?.focus();
  }

  #draw() {
    document.documentElement.dataset.size = this.size;
    document.documentElement.dataset.keys = this.keysOn ? "on" : "off";
    $("option-highlight").checked = this.highlight;
    $("option-keys").checked = this.keysOn;
    $("keys").hidden = !this.keysOn;
    for (const sign of document.querySelectorAll("[data-key]")) sign.textContent = signOf(this.keymap.of(sign.dataset.key)[0]);
    const present = Object.keys(DEFAULTS).filter((action) => document.querySelector(`button:not([hidden]) > [data-key="${action}"]`) || action === "undo" || ["left", "right", "highlight"].includes(action));
    $("key-list").replaceChildren(...present.map((action) => this.#row(action)));
  }

  #row(action) {
    const label = this.#words[`act.${action}`];
    const signs = this.keymap.of(action).map(signOf).join("  ");
    const button = element("button", { type: "button", id: `key-${action}`, className: "quiet", textContent: this.#listening === action ? this.#words.press : signs });
    button.setAttribute("aria-label", `${label}: ${button.textContent}`);
    button.addEventListener("click", () => {
      this.#listening = action;
      this.#draw();
      $(`key-${action}`).focus();
    });
    return element("li", {}, element("span", { textContent: label }), button);
  }
}
