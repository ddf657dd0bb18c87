// Says what is wrong with the layout of the page at its width, a line each: "kind: element". Kinds: wide (an element or
// its text is wider than its box), scrolls (a box scrolls sideways), tall (a table's row is taller than its texts ask),
// late (the content begins more than `late` pixels down). Boxes in `allowed` may scroll.
([allowed, late]) => {
  const wrong = [], page = document.documentElement;
  const called = each => each.tagName.toLowerCase() + (each.id ? '#' + each.id : '')
    + [...each.classList].map(name => '.' + name).join('') + ' "' + (each.textContent || '').trim().slice(0, 30) + '"';
  const clipped = each => each && (getComputedStyle(each).clipPath !== 'none' || clipped(each.parentElement));
  const px = value => parseFloat(value) || 0;
  if (page.scrollWidth > innerWidth) wrong.push(`wide: the page, ${page.scrollWidth} px`);
  for (const each of document.body.querySelectorAll('*')) {
    if (!each.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) || each.closest('svg') && each.tagName !== 'svg') continue;
    const look = getComputedStyle(each), box = each.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1 || clipped(each) || each.closest('.skip')) continue;
    const parent = each.parentElement, around = parent.getBoundingClientRect();
    const held = getComputedStyle(parent);
    if (!['absolute', 'fixed'].includes(look.position) && held.display !== 'contents' && parent !== document.body
        && !['inline', 'table-row', 'table-row-group', 'table-header-group'].includes(held.display)
        && held.overflowX === 'visible' && (box.right > around.right + 1.5 || box.left < around.left - 1.5))
      wrong.push(`wide: ${called(each)}, ${Math.round(Math.max(box.right - around.right, around.left - box.left))} px outside ${called(parent).slice(0, 40)}`);
    if (look.display !== 'inline' && each.clientWidth && each.scrollWidth > each.clientWidth + 1) {
      const scrolls = ['auto', 'scroll'].includes(look.overflowX);
      if (scrolls && !each.closest(allowed)) wrong.push(`scrolls: ${called(each)}, ${each.scrollWidth} in ${each.clientWidth} px`);
      else if (!scrolls && look.overflowX !== 'visible' && look.textOverflow !== 'ellipsis' && !each.closest(allowed))
        wrong.push(`wide: ${called(each)} is cut, ${each.scrollWidth} in ${each.clientWidth} px`);
      else if (look.overflowX === 'visible' && !each.children.length && look.display !== 'table-cell')
        wrong.push(`wide: the text of ${called(each)}, ${each.scrollWidth} in ${each.clientWidth} px`);
    }
    if (each.tagName === 'TR' && look.display === 'table-row' && !each.closest('.matrix')) {
      // what it asks: its texts one after the other over the table's width, or its tallest control or drawing, or the
      // longest text of a cell over a third of that width
      const wide = each.closest('table').clientWidth, line = px(getComputedStyle(each.cells[0]).lineHeight) || 22;
      const letters = [...each.cells].map(cell => cell.innerText.trim().length);
      const padding = Math.max(...[...each.cells].map(cell => px(getComputedStyle(cell).paddingTop) + px(getComputedStyle(cell).paddingBottom)));
      const lines = Math.max(letters.reduce((a, b) => a + b, 0) * 8 / wide, Math.max(...letters) * 8 / (wide / 3));
      const controls = Math.max(0, ...[...each.querySelectorAll('button, input, select, svg, img, progress, form, ul, ol')].map(inner => inner.getBoundingClientRect().height));
      const asks = Math.max(Math.ceil(lines) * line, controls) + padding + 1.5 * line;
      if (box.height > asks) wrong.push(`tall: ${called(each)}, ${Math.round(box.height)} px, and ${Math.round(asks)} would do`);
    }
  }
  if (late) {
    const head = [...document.querySelectorAll('h1')].find(each => each.checkVisibility() && each.getBoundingClientRect().height > 1)
      || document.querySelector('main');
    const top = head.getBoundingClientRect().top + scrollY;
    if (top > late) wrong.push(`late: the content begins at ${Math.round(top)} px`);
  }
  return [...new Set(wrong)];
}
