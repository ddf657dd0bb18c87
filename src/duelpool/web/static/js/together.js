// Long answers scroll together: each as far through its own length as the other.

export class Together {
  #panes;
  #on = false;
  #moved = null; // the pane that was moved by us, whose scrolling is no wish

  constructor(panes) {
    this.#panes = panes;
    document.addEventListener("scroll", (event) => this.#follow(event.target), { capture: true, passive: true });
  }

  set on(value) {
    this.#on = value;
  }

  #follow(body) {
    if (!this.#on || !(body instanceof Element) || !body.matches(".pane > .body")) return;
    if (this.#moved === body) return void (this.#moved = null);
    const through = body.scrollTop / Math.max(1, body.scrollHeight - body.clientHeight);
    for (const pane of this.#panes()) {
      const other = pane.querySelector(".body");
      const wanted = Math.round(through * (other.scrollHeight - other.clientHeight));
      if (other === body || Math.abs(other.scrollTop - wanted) < 1) continue;
      this.#moved = other;
      other.scrollTop = wanted;
    }
  }
}
