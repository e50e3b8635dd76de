"""How far texts on a page stand out from what is behind them."""

CONTRASTS = """
const shade = (colour) => {
  const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const [r, g, b] = parts.map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
  const style = getComputedStyle(node);
  const ink = node.closest("svg") ? style.fill : style.color;
  const [a, b] = [shade(ink), shade(behind(node))].sort((x, y) => y - x);
  found.push([(a + 0.05) / (b + 0.05), walker.currentNode.textContent.trim()]);
}
return found;
"""
"""JavaScript that returns the contrast of every visible text, as in WCAG, with the text."""
