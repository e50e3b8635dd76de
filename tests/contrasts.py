"""How far texts on a page stand out from what is behind them, also where they are see-through."""

CONTRASTS = """
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const shade = (parts) => {
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
const mixed = (node, ink, paper) => {
  let [r, g, b, share = 1] = ink;
  for (let at = node; at; at = at.parentElement) share *= getComputedStyle(at).opacity;
  return [r, g, b].map((part, i) => share * part + (1 - share) * paper[i]);
};
const found = [];
const [part = "body"] = arguments;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
  if (!node.closest(part)) continue;
  const style = getComputedStyle(node);
  const ink = node.closest("svg") ? style.fill : style.color;
  const paper = channels(behind(node)).slice(0, 3);
  const shades = [mixed(node, channels(ink), paper), paper].map(shade);
  const [a, b] = shades.sort((x, y) => y - x);
  found.push([(a + 0.05) / (b + 0.05), walker.currentNode.textContent.trim()]);
}
return found;
"""
"""JavaScript that returns the contrast of every visible text, as in WCAG, with the text.

Its argument is a selector of the part of the page to look at; without it, all.
"""
