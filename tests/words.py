"""Tables of long words, and which words a page breaks over lines or cuts off."""

from factories import payments

WIDTHS = [1200, 860, 390]
NAMES = {
    "id": "policy_number_of_the_insured",
    "amount": "total_claim_amount",
    "visits": "number_of_vehicles_involved",
    "city": "insured_education_level",
}
LEVELS = {"Bern": "machine-op-inspct", "Oslo": "Major Damage", "Rome": "Multi-vehicle Collision"}


def wordy(n=200, seed=0):
    """Return a table of payments under long names, with long numbers and categories."""
    rows = payments(n, seed)
    amount = (rows["amount"] * 12_345.678).round(2)
    return rows.assign(amount=amount, city=rows["city"].replace(LEVELS)).rename(columns=NAMES)


# Words of letters and digits, and numbers with their marks, in the elements that a selector finds.
BROKEN = r"""
const found = [], range = document.createRange();
for (const element of document.querySelectorAll(arguments[0])) {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode());) {
    for (const word of text.data.matchAll(/\p{N}+([.,:]\p{N}+)*|\p{L}+/gu)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
      const isCut = boxes.some((box) => box.left < 0 || box.right > innerWidth + 0.5);
      const lines = new Set(boxes.map((box) => Math.round(box.top)));
      if (isCut || lines.size > 1) found.push(word[0]);
    }
  }
}
const hides = [...document.querySelectorAll("*")].filter((element) =>
  element.scrollWidth > element.clientWidth + 1
  && ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX)
  && element.clientWidth > 1);
return [...found, ...hides.map((element) => `<${element.localName} ${element.className}>`)];
"""
