
// The picture with zoom, search and keys. Without it the page shows the same boxes, drawn once.
const SVG = "http://www.w3.org/2000/svg";
const ROW = 18;
const NARROWEST = 0.7;
const GAP = 0.6;
const make = (name, attributes, parent) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
};
const element = (name, className, parent) => {
  const made = document.createElement(name);
  made.className = className;
  parent?.append(made);
  return made;
};

// Parent, end of subtree and left edge of every box, from depths and widths alone: a box follows the one it stands on.
const placed = (data) => {
  const count = data.depth.length;
  const parent = new Int32Array(count);
  const end = new Int32Array(count).fill(count);
  const from = new Float64Array(count);
  const next = new Float64Array(count);
  const open = [];
  for (let at = 0; at < count; at++) {
    while (open.length > data.depth[at]) end[open.pop()] = at;
    parent[at] = at === 0 ? -1 : open[open.length - 1];
    from[at] = at === 0 ? 0 : next[parent[at]];
    next[at] = from[at];
    if (at > 0) next[parent[at]] += data.width[at];
    open.push(at);
  }
  return { parent, end, from };
};

const flame = (root, data) => {
  const { parent, end, from } = placed(data);
  const count = data.depth.length;
  const state = { zoom: 0, chosen: 0, icicle: data.icicle, hits: null };
  let drawn = [];
  let letter = 6.6;

  // Figures as the rest of the page writes them.
  const figure = (weight) => {
    const value = weight / data.divisor;
    const size = Math.abs(value);
    if (size !== 0 && size < 0.095) return value.toFixed(3);
    if (size < 10) return value.toFixed(2);
    if (size < 100) return value.toFixed(1);
    return Math.round(value).toLocaleString("en-US");
  };
  const signed = (weight) => (weight < 0 ? "−" : "+") + figure(Math.abs(weight));
  const share = (part, whole) => `${((100 * part) / whole).toFixed(part / whole < 0.00095 ? 2 : 1)} %`;
  const nameOf = (at) => data.names[data.name[at]][0];
  const words = (at) => {
    // Boxes that stand for many narrow ones have a width only.
    if (data.diff && (data.before[at] > 0 || data.after[at] > 0)) {
      const [before, after] = [data.before[at], data.after[at]];
      const part = before > 0 ? `, ${signed(100 * data.divisor * (after - before) / before)} %` : "";
      return `${figure(before)} → ${figure(after)} ${data.unit} (${signed(after - before)}${part})`;
    }
    const zoomed = state.zoom === 0 ? "" : `, ${share(data.width[at], data.width[state.zoom])} of what is zoomed`;
    return `${figure(data.width[at])} ${data.unit}, ${share(data.width[at], data.width[0])} of all${zoomed}; itself ${figure(data.own[at])}`;
  };

  const live = document.createDocumentFragment();
  const tools = element("div", "tools", live);
  const search = element("input", "", tools);
  Object.assign(search, { type: "search", placeholder: "Search a function", spellcheck: false });
  search.setAttribute("aria-label", "Search functions; text between slashes is a pattern");
  const turn = button("", () => show({ icicle: !state.icicle }));
  const whole = button("Whole picture", () => show({ zoom: 0, chosen: 0 }));
  tools.append(turn, whole);
  const found = element("output", "found", tools);
  const crumbs = element("nav", "crumbs", live);
  crumbs.setAttribute("aria-label", "What is zoomed");
  const boxes = element("div", "boxes", live);
  boxes.tabIndex = 0;
  boxes.setAttribute("role", "tree");
  boxes.setAttribute("aria-label", root.querySelector(".flame-static svg").getAttribute("aria-label"));
  const svg = make("svg", { class: "flame-boxes", width: "100%" }, boxes);
  const detail = element("div", "detail", live);
  detail.setAttribute("aria-live", "polite");
  const keys = element("p", "keys", live);
  for (const [key, does] of [["arrows", "move"], ["Enter", "zooms"], ["Escape", "goes back"], ["/", "searches"], ["c", "copies the name"]]) {
    element("kbd", "", keys).textContent = key;
    keys.append(` ${does}  `);
  }

  const fit = (at, width) => {
    const letters = Math.floor((width - 6) / letter);
    if (letters < 3) return "";
    const [full, short] = data.names[data.name[at]];
    if (full.length <= letters) return full;
    return short.length <= letters ? short : `${short.slice(0, letters - 1)}…`;
  };

  const isAncestor = (at) => at < state.zoom && end[at] > state.zoom;
  const draw = () => {
    const width = boxes.clientWidth;
    const scale = width / (data.width[state.zoom] || 1);
    const seen = [];
    for (let at = 0; at < count; at++) {
      const past = isAncestor(at);
      const inside = at >= state.zoom && at < end[state.zoom];
      if (!past && (!inside || data.width[at] * scale < NARROWEST)) {
        // What stands on it is narrower still, or outside as well.
        at = end[at] - 1;
        continue;
      }
      seen.push(at);
    }
    const levels = 1 + seen.reduce((most, at) => Math.max(most, data.depth[at]), 0);
    svg.setAttribute("height", levels * ROW);
    const all = document.createDocumentFragment();
    for (const at of seen) {
      const past = isAncestor(at);
      const x = past ? 0 : (from[at] - from[state.zoom]) * scale;
      const wide = past ? width : data.width[at] * scale;
      const y = (state.icicle ? data.depth[at] : levels - 1 - data.depth[at]) * ROW;
      const dim = state.hits && !state.hits[data.name[at]];
      const g = make("g", { id: `box-${at}`, role: "treeitem", "aria-level": data.depth[at] + 1, "aria-label": `${nameOf(at)}: ${words(at)}` }, all);
      g.setAttribute("class", `${past ? "past" : ""}${dim ? " dim" : ""}${at === state.chosen ? " chosen" : ""}`);
      make("rect", { x: x.toFixed(2), y, width: (wide > 3 ? wide - GAP : wide).toFixed(2), height: ROW - 1, class: data.classes[data.class[at]] }, g);
      const text = fit(at, wide);
      if (text) make("text", { x: (x + 3).toFixed(2), y: y + 12.5 }, g).textContent = text;
    }
    svg.replaceChildren(all);
    drawn = seen;
  };

  const tell = (at) => {
    const name = element("code", "", null);
    name.textContent = nameOf(at);
    const bold = element("b", "", null);
    bold.append(name);
    const copying = copyButton(() => nameOf(at), name);
    detail.replaceChildren(bold, copying, document.createElement("br"), words(at));
  };

  const path = (at) => {
    const names = [];
    for (let up = at; up >= 0; up = parent[up]) names.unshift(up);
    return names;
  };
  const tellPath = () => {
    crumbs.replaceChildren(...path(state.zoom).map((at) => {
      const step = button(data.names[data.name[at]][1], () => show({ zoom: at, chosen: at }));
      step.title = nameOf(at);
      return step;
    }));
  };

  const bringIntoView = () => {
    const g = document.getElementById(`box-${state.chosen}`);
    if (!g) return;
    boxes.setAttribute("aria-activedescendant", g.id);
    const [box, frame] = [g.getBoundingClientRect(), boxes.getBoundingClientRect()];
    if (box.top < frame.top) boxes.scrollTop += box.top - frame.top - ROW;
    if (box.bottom > frame.bottom) boxes.scrollTop += box.bottom - frame.bottom + ROW;
  };
  const toRoot = () => (boxes.scrollTop = state.icicle ? 0 : boxes.scrollHeight);

  const show = (change) => {
    const turned = "icicle" in change || "zoom" in change;
    Object.assign(state, change);
    turn.textContent = state.icicle ? "Root at the bottom" : "Root at the top";
    whole.disabled = state.zoom === 0;
    draw();
    tellPath();
    tell(state.chosen);
    if (turned) toRoot();
    bringIntoView();
  };

  const wanted = (text) => {
    const pattern = /^\/(.+)\/$/.exec(text);
    if (!pattern) return (name) => name.toLowerCase().includes(text.toLowerCase());
    try {
      const expression = new RegExp(pattern[1], "i");
      return (name) => expression.test(name);
    } catch {
      return null;
    }
  };
  const seek = (text) => {
    const matches = text === "" ? null : wanted(text);
    if (text !== "" && !matches) {
      found.textContent = "no pattern yet";
      return;
    }
    state.hits = matches && data.names.map(([full]) => matches(full));
    draw();
    if (!matches) {
      found.textContent = "";
      return;
    }
    // A box that stands on another match is counted with it.
    let [width, before, after, many] = [0, 0, 0, 0];
    for (let at = 0; at < count; at++) {
      if (!state.hits[data.name[at]]) continue;
      width += data.width[at];
      if (data.diff) [before, after] = [before + data.before[at], after + data.after[at]];
      many += 1;
      at = end[at] - 1;
    }
    // What was folded away is known by function: of several that match, the largest is the least there can be.
    const known = data.totals.filter(([name]) => state.hits[name]);
    const [, was, is] = known.reduce((most, row) => (Math.max(row[1], row[2]) > Math.max(most[1], most[2]) ? row : most), [0, 0, 0]);
    const folded = Math.max(was, is) > (data.diff ? Math.max(before, after) : width) * 1.001;
    if (folded) [width, before, after] = [is, was, is];
    const what = data.diff ? `${figure(before)} → ${figure(after)} ${data.unit}` : `${share(width, data.width[0])} · ${figure(width)} ${data.unit}`;
    const place = many === 0 ? "in boxes too narrow to be drawn" : folded ? "mostly in boxes too narrow to be drawn" : `in ${many} ${many === 1 ? "tower" : "towers"}`;
    found.textContent = many === 0 && !folded ? "nothing matches" : `${folded && known.length > 1 ? "at least " : ""}${what} ${place}`;
  };

  const beside = (step) => {
    const row = drawn.filter((at) => data.depth[at] === data.depth[state.chosen]);
    return row[row.indexOf(state.chosen) + step];
  };
  const above = () => drawn.filter((at) => parent[at] === state.chosen).reduce((best, at) => (best === undefined || data.width[at] > data.width[best] ? at : best), undefined);
  const below = () => (parent[state.chosen] >= 0 ? parent[state.chosen] : undefined);
  const moves = {
    ArrowUp: () => (state.icicle ? below() : above()),
    ArrowDown: () => (state.icicle ? above() : below()),
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Home: () => 0,
  };
  const zoomOut = () => {
    const at = Math.max(parent[state.zoom], 0);
    show({ zoom: at, chosen: state.zoom });
  };
  boxes.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key in moves) {
      const at = moves[key]();
      if (at !== undefined) show({ chosen: at });
    } else if (key === "Enter" || key === " ") show({ zoom: state.chosen });
    else if (key === "Escape") zoomOut();
    else if (key === "c") detail.querySelector("button").click();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === search) return;
    event.preventDefault();
    search.focus();
  });
  search.addEventListener("input", () => seek(search.value.trim()));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      seek("");
      boxes.focus();
    }
  });
  const boxAt = (event) => {
    const g = event.target.closest("g[id]");
    return g ? Number(g.id.slice(4)) : undefined;
  };
  svg.addEventListener("click", (event) => {
    const at = boxAt(event);
    if (at !== undefined) show({ zoom: at, chosen: at });
  });
  svg.addEventListener("pointermove", (event) => {
    const at = boxAt(event);
    if (at !== undefined && event.pointerType === "mouse") tell(at);
  });
  svg.addEventListener("pointerleave", () => tell(state.chosen));

  root.querySelector(".flame-static").after(live);
  document.documentElement.classList.add("scripted");
  // The width of a letter, as this reader's type has it.
  const probe = make("text", {}, svg);
  probe.textContent = "m".repeat(100);
  letter = probe.getComputedTextLength() / 100 || letter;
  show({ zoom: 0, chosen: 0 });
  // A wider picture has more rows: whoever looked at the root still does.
  let atRoot = true;
  boxes.addEventListener("scroll", () => (atRoot = state.icicle ? boxes.scrollTop < ROW : boxes.scrollTop + boxes.clientHeight > boxes.scrollHeight - ROW));
  new ResizeObserver(() => {
    draw();
    if (atRoot) toRoot();
  }).observe(boxes);

  for (const name of document.querySelectorAll("#functions .function")) {
    const text = name.textContent;
    const act = () => {
      search.value = text;
      seek(text);
      root.scrollIntoView({ block: "start" });
    };
    name.replaceChildren(button(text, act));
  }
};

const island = document.getElementById("flame-data");
const data = island && JSON.parse(island.textContent);
if (data && data.depth.length > 0) flame(document.getElementById("flame"), data);
