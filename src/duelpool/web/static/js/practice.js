// Practice pairs take the same keys as the judging page, so that people learn them.

import { Keymap, pressed } from "./keys.js";
import { stored } from "./options.js";

const { keysOn = true, keys = {} } = stored();
const keymap = new Keymap(keys);

document.addEventListener("keydown", (event) => {
  const name = keysOn ? pressed(event) : null;
  const action = name && keymap.action(name);
  if (action === "left" || action === "right") document.querySelector(`button.choice[value="${action}"]`)?.click();
});
