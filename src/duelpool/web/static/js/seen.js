// On a narrow screen the passages are stacked: both must have been seen before a choice counts.

export const NARROW = "(max-width: 47.99em)";

export class Seen {
  #panes = [];
  #seen = new Set();
  #looked = false;
  #changed;
  #narrow = matchMedia(NARROW);
  #observer = null;

  constructor(changed) {
    this.#changed = changed;
    this.#narrow.addEventListener("change", () => changed());
  }

  // Observe these panes from now on and forget what was seen before.
  watch(panes, foot) {
    this.#observer?.disconnect();
    this.#panes = [...panes];
    this.#seen.clear();
    this.#looked = false;
    const covered = foot ? Math.min(foot.offsetHeight, innerHeight / 2) : 0;
    this.#observer = new IntersectionObserver((entries, from) => from === this.#observer && this.#look(entries), {
      rootMargin: `0px 0px -${Math.round(covered)}px 0px`,
      threshold: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
    });
    this.#panes.forEach((pane) => this.#observer.observe(pane));
    this.#changed();
  }

  // A pane is seen when most of it was in view, or when it filled most of the view.
  #look(entries) {
    this.#looked = true;
    for (const { target, intersectionRatio, intersectionRect, rootBounds } of entries) {
      if (intersectionRatio >= 0.6 || intersectionRect.height >= 0.5 * (rootBounds?.height ?? innerHeight)) this.#seen.add(target);
    }
    this.#changed();
  }

  get narrow() {
    return this.#narrow.matches;
  }

  // Whether the browser has told what of these panes is in view.
  get looked() {
    return this.#looked;
  }

  get missing() {
    return this.narrow ? (this.#panes.find((pane) => !this.#seen.has(pane)) ?? null) : null;
  }
}
