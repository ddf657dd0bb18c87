// Keyboard shortcuts: defaults, personal key maps, and when keys are ignored.

export const DEFAULTS = {
  left: ["ArrowLeft", "1"],
  right: ["ArrowRight", "2"],
  "definitely-left": ["Shift+ArrowLeft"],
  "definitely-right": ["Shift+ArrowRight"],
  "left-bad": ["Q"],
  "right-bad": ["P"],
  "both-bad": ["B"],
  tie: ["T"],
  same: ["S"],
  "cannot-judge": ["X"],
  skip: ["K"],
  undo: ["U"],
  context: ["C"],
  note: ["N"],
  together: ["L"],
  highlight: ["H"],
  help: ["?"],
};

const SIGNS = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Enter: "⏎", " ": "␣" };
const NEVER = new Set(["Tab", "Escape", "Enter", " ", "Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock", "Dead", "Process", "Unidentified"]);

export function nameOf(event) {
  const name = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  return event.shiftKey && name.startsWith("Arrow") ? `Shift+${name}` : name;
}

export function signOf(name) {
  const bare = name.replace("Shift+", "");
  return (name === bare ? "" : "⇧ ") + (SIGNS[bare] ?? bare);
}

// A popover that has just closed may still have the focus, but it takes no more text.
const inText = (target) =>
  target instanceof Element && (target.isContentEditable || target.matches("input, textarea, select")) && target.checkVisibility();

// The name of a key that may be a shortcut, or null: modifiers, repeats and text fields are ignored.
export function pressed(event) {
  if (event.defaultPrevented || event.repeat || event.isComposing) return null;
  if (event.ctrlKey || event.altKey || event.metaKey || inText(event.target)) return null;
  return nameOf(event);
}

export const mayBeKey = (event) => !NEVER.has(event.key) && !event.ctrlKey && !event.altKey && !event.metaKey;

export class Keymap {
  constructor(own = {}) {
    this.own = Object.fromEntries(Object.entries(own).filter(([action]) => action in DEFAULTS));
  }

  of(action) {
    return this.own[action] ?? DEFAULTS[action];
  }

  action(name) {
    return Object.keys(DEFAULTS).find((action) => this.of(action).includes(name)) ?? null;
  }

  // Assign a key to an action; the action that had it gets the old key in exchange, so none is left without.
  set(action, name) {
    const before = this.of(action);
    const holder = this.action(name);
    if (holder === action) return;
    if (holder) {
      const rest = this.of(holder).filter((each) => each !== name);
      this.own[holder] = rest.length ? rest : [before[0]];
    }
    this.own[action] = [name];
  }

  reset() {
    this.own = {};
  }
}
