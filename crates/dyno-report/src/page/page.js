// Comfort only: tables that sort, tables and commands that copy. Without it the page says all it has to say.
"use strict";
const button = (label, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.addEventListener("click", () => act(made));
  return made;
};

const cellOf = (row, column) => row.children[column];
const keyOf = (cell) => ("value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim());
const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

// What is empty stays at the end whichever way the rest is turned.
const sort = (table, column, direction) => {
  const body = table.tBodies[0];
  const isEmpty = (row) => cellOf(row, column).textContent.trim() === "";
  const order = (a, b) => isEmpty(a) - isEmpty(b) || direction * compare(keyOf(cellOf(a, column)), keyOf(cellOf(b, column)));
  body.append(...[...body.rows].sort(order));
};

const sortable = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const label = head.textContent;
    const act = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(table, column, down ? -1 : 1);
    };
    head.replaceChildren(button(label, act));
  });
};

// Where the clipboard is closed to files the text is at least selected.
const copy = async (text, source, from) => {
  try {
    await navigator.clipboard.writeText(text);
    from.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(source);
    from.textContent = "selected";
  }
  setTimeout(() => (from.textContent = "copy"), 1500);
};

const lines = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t")).join("\n");
const copyButton = (text, source) => {
  const made = button("copy", (from) => copy(text(), source, from));
  made.className = "copy";
  return made;
};

for (const table of document.querySelectorAll("table[data-sort]")) {
  sortable(table);
  table.caption.append(copyButton(() => lines(table), table.tBodies[0]));
}
for (const block of document.querySelectorAll("pre[data-copy]")) {
  const code = block.querySelector("code");
  block.append(copyButton(() => code.textContent, code));
}
