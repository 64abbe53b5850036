
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

// Boxes in the order in which each follows the one it stands on, from sums that were merged by name.
const laidOut = (top, sorted) => {
  const tree = { depth: [], name: [], class: [], width: [], own: [], before: [], after: [] };
  const open = [[top, 0]];
  while (open.length > 0) {
    const [node, depth] = open.pop();
    for (const [key, value] of Object.entries({ depth, name: node.name, class: node.class, width: node.width, own: node.own })) tree[key].push(value);
    const above = [...node.above.values()];
    if (sorted) above.sort((a, b) => b.width - a.width);
    for (const child of above.reverse()) open.push([child, depth + 1]);
  }
  return tree;
};

// The same time, of one side of the kernel's door only, or with callees at the root.
const regrown = (from, sideOf, side, inverted) => {
  const top = { name: from.name[0], class: from.class[0], width: 0, own: 0, above: new Map() };
  const standing = new Float64Array(from.depth.length);
  for (let at = 1; at < standing.length; at++) standing[from.parent[at]] += from.width[at];
  for (let at = 1; at < standing.length; at++) {
    const own = from.width[at] - standing[at];
    if (own <= 0 || (side && sideOf(from, at) !== side)) continue;
    const way = [];
    for (let up = at; up > 0; up = from.parent[up]) way.push(up);
    if (!inverted) way.reverse();
    let node = top;
    top.width += own;
    for (const step of way) {
      const key = `${from.name[step]} ${from.class[step]}`;
      if (!node.above.has(key)) node.above.set(key, { name: from.name[step], class: from.class[step], width: 0, own: 0, above: new Map() });
      node = node.above.get(key);
      node.width += own;
      if (step === at) node.own += own;
    }
  }
  return laidOut(top, inverted);
};

// Where the picture begins: behind what nearly all samples share, the last box that something stands on.
const NEARLY_ALL = 0.98;
const forkOf = (tree) => {
  let at = 0;
  for (;;) {
    let widest = -1;
    for (let child = at + 1; child < tree.end[at]; child = tree.end[child]) {
      if (widest < 0 || tree.width[child] > tree.width[widest]) widest = child;
    }
    if (widest < 0) return Math.max(tree.parent[at], 0);
    if (tree.width[widest] < NEARLY_ALL * tree.width[0]) return at;
    at = widest;
  }
};

const flame = (root, data) => {
  const grown = (tree) => {
    const made = { ...tree, ...placed(tree), count: tree.depth.length };
    return { ...made, fork: forkOf(made) };
  };
  const original = grown(data);
  const sideOf = (tree, at) => data.classes[tree.class[at]][0];
  const trees = { "": original };
  const treeOf = (side, inverted) => {
    const key = `${side}${inverted ? "-inverted" : ""}`;
    trees[key] ??= grown(regrown(original, sideOf, side, inverted));
    return trees[key];
  };
  const state = { side: "", inverted: false, zoom: 0, chosen: 0, icicle: data.icicle, open: false, hits: null, walked: -1 };
  let tree = original;
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
  const fullName = (at) => data.names[tree.name[at]][0];
  const isLibrary = (name) => /^(\{|core::|std::|alloc::|<)/.test(name);
  // A closure has no name of its own: it is told with the nearest function below it that somebody wrote.
  const nameOf = (at) => {
    const plain = data.names[tree.name[at]][1];
    if (!plain.startsWith("{closure")) return plain;
    let up = tree.parent[at];
    while (up > 0 && isLibrary(data.names[tree.name[up]][1])) up = tree.parent[up];
    return up > 0 ? `${data.names[tree.name[up]][1]} {closure}` : plain;
  };
  const lastParts = (name) => name.split("::").slice(-2).join("::");
  const words = (at) => {
    // Boxes that stand for many narrow ones have a width only.
    if (data.diff && (tree.before[at] > 0 || tree.after[at] > 0)) {
      const [before, after] = [tree.before[at], tree.after[at]];
      const part = before > 0 ? `, ${signed(100 * data.divisor * (after - before) / before)} %` : "";
      return `${figure(before)} → ${figure(after)} ${data.unit} (${signed(after - before)}${part})`;
    }
    const zoomed = state.zoom === 0 ? "" : `, ${share(tree.width[at], tree.width[state.zoom])} of what is zoomed`;
    return `${figure(tree.width[at])} ${data.unit}, ${share(tree.width[at], original.width[0])} of all${zoomed}; itself ${figure(tree.own[at])}`;
  };

  const live = document.createDocumentFragment();
  const tools = element("div", "tools", live);
  const search = element("input", "", tools);
  Object.assign(search, { type: "search", placeholder: "Search a function", spellcheck: false });
  search.setAttribute("aria-label", "Search functions; text between slashes is a pattern; Enter walks from match to match");
  const toggle = (label, act) => {
    const made = button(label, act);
    tools.append(made);
    return made;
  };
  const turn = toggle("", () => show({ icicle: !state.icicle }));
  const trunk = toggle("", () => show({ open: !state.open }));
  const whole = toggle("Whole picture", () => show({ zoom: 0, chosen: 0 }));
  const sides = new Set(data.classes.map((name) => name[0]));
  const look = (change) => show({ ...change, zoom: 0, chosen: 0, open: false });
  const inverted = data.diff ? null : toggle("Callees first", () => look({ inverted: !state.inverted }));
  const bothSides = !data.diff && sides.has("u") && sides.has("k");
  const ofSide = (side, label) => [side, toggle(label, () => look({ side: state.side === side ? "" : side }))];
  const sideButtons = bothSides ? [ofSide("u", "User only"), ofSide("k", "Kernel only")] : [];
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
  const tip = element("div", "tip", live);
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  const keys = element("p", "keys", live);
  for (const [key, does] of [["arrows", "move"], ["Enter", "zooms, or walks through matches"], ["Escape", "goes back"], ["/", "searches"], ["c", "copies the name"]]) {
    element("kbd", "", keys).textContent = key;
    keys.append(` ${does}  `);
  }

  const cut = (name, width) => {
    const letters = Math.floor((width - 6) / letter);
    if (letters < 3) return "";
    if (name.length <= letters) return name;
    const short = lastParts(name);
    return short.length <= letters ? short : `${short.slice(0, letters - 1)}…`;
  };

  // The box that has the whole width, and how many below it are told by one bar.
  const isBelow = (at, of) => at < of && tree.end[at] > of;
  const standing = () => {
    const inTrunk = state.zoom === tree.fork || isBelow(state.zoom, tree.fork);
    const base = !state.open && inTrunk ? tree.fork : state.zoom;
    const below = tree.depth[base];
    return { base, folded: !state.open && below >= 3 ? below : 0 };
  };

  const bar = (folded, base, width, y, all) => {
    const text = `▸ ${folded} frames that ${share(tree.width[base], original.width[0])} of all stand on: ${fullPathWords(base)}`;
    const g = make("g", { id: "trunk", role: "treeitem", "aria-level": 1, "aria-label": text }, all);
    make("rect", { x: 0, y, width: width.toFixed(2), height: ROW - 1, class: "mark" }, g);
    make("text", { x: 3, y: y + 12.5 }, g).textContent = text.length * letter > width ? `${text.slice(0, Math.max(3, Math.floor((width - 12) / letter)))}…` : text;
  };
  const fullPathWords = (base) => {
    const way = path(tree.parent[base]).slice(1).map((at) => lastParts(nameOf(at)));
    return way.length <= 3 ? way.join(" → ") : `${way[0]} → … → ${way[way.length - 1]}`;
  };

  const draw = () => {
    const width = boxes.clientWidth;
    const { base, folded } = standing();
    const scale = width / (tree.width[base] || 1);
    const seen = [];
    for (let at = 0; at < tree.count; at++) {
      const past = isBelow(at, base);
      const inside = at >= base && at < tree.end[base];
      if (!past && (!inside || tree.width[at] * scale < NARROWEST)) {
        // What stands on it is narrower still, or outside as well.
        at = tree.end[at] - 1;
        continue;
      }
      if (!past || folded === 0) seen.push(at);
    }
    const row = (at) => tree.depth[at] - (folded === 0 ? 0 : folded - 1);
    const levels = 1 + seen.reduce((most, at) => Math.max(most, row(at)), 0);
    const top = (row) => (state.icicle ? row : levels - 1 - row) * ROW;
    svg.setAttribute("height", levels * ROW);
    const all = document.createDocumentFragment();
    if (folded > 0) bar(folded, base, width, top(0), all);
    for (const at of seen) {
      const past = isBelow(at, base);
      const x = past ? 0 : (tree.from[at] - tree.from[base]) * scale;
      const wide = past ? width : tree.width[at] * scale;
      const y = top(row(at));
      const dim = state.hits && !state.hits.names[tree.name[at]];
      const g = make("g", { id: `box-${at}`, role: "treeitem", "aria-level": row(at) + 1, "aria-label": `${fullName(at)}: ${words(at)}` }, all);
      g.setAttribute("class", `${past ? "past" : ""}${dim ? " dim" : ""}${at === state.chosen ? " chosen" : ""}`);
      make("rect", { x: x.toFixed(2), y, width: (wide > 3 ? wide - GAP : wide).toFixed(2), height: ROW - 1, class: data.classes[tree.class[at]] }, g);
      const text = cut(nameOf(at), wide);
      if (text) make("text", { x: (x + 3).toFixed(2), y: y + 12.5 }, g).textContent = text;
    }
    svg.replaceChildren(all);
    drawn = seen;
  };

  const tell = (at) => {
    const name = element("code", "", null);
    name.textContent = fullName(at);
    const bold = element("b", "", null);
    bold.append(name);
    const copying = copyButton(() => fullName(at), name);
    detail.replaceChildren(bold, copying, document.createElement("br"), words(at));
  };

  // Beside the pointer or the finger, within the window.
  const tellAt = (at, x, y) => {
    const name = element("b", "", null);
    name.textContent = nameOf(at);
    tip.replaceChildren(name, document.createElement("br"), words(at));
    tip.hidden = false;
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${Math.max(4, Math.min(x + 14, document.documentElement.clientWidth - wide - 4))}px`;
    tip.style.top = `${y + 18 + high > window.innerHeight ? Math.max(4, y - high - 12) : y + 18}px`;
  };
  const hush = () => (tip.hidden = true);

  const path = (at) => {
    const names = [];
    for (let up = at; up >= 0; up = tree.parent[up]) names.unshift(up);
    return names;
  };
  // The first, and the last three: between them lies what nobody reads.
  const tellPath = () => {
    const way = path(state.zoom);
    const step = (at) => {
      const made = button(lastParts(nameOf(at)), () => show({ zoom: at, chosen: at }));
      made.title = fullName(at);
      return made;
    };
    const left = way.slice(1, -3);
    const middle = left.length > 1 ? [button(`… ${left.length} more`, () => show({ open: true }))] : left.map(step);
    crumbs.replaceChildren(step(0), ...middle, ...way.slice(1).slice(-3).map(step));
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

  // What is seen stands in the address, so that it can be sent to somebody.
  const remember = () => {
    const kept = new URLSearchParams();
    if (state.side) kept.set("side", state.side);
    if (state.inverted) kept.set("callees", "first");
    if (state.zoom > 0) kept.set("zoom", state.zoom);
    if (state.hits) kept.set("find", search.value.trim());
    const words = kept.toString();
    try {
      history.replaceState(null, "", words === "" ? location.pathname + location.search : `#${words}`);
    } catch {
      // A page that lies in a frame may not; nothing else depends on it.
    }
  };
  const remembered = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    const side = sideButtons.some(([letter]) => letter === kept.get("side")) ? kept.get("side") : "";
    const inverted = !data.diff && kept.get("callees") === "first";
    const zoom = Number(kept.get("zoom"));
    const known = Number.isInteger(zoom) && zoom > 0 && zoom < treeOf(side, inverted).count ? zoom : 0;
    return { side, inverted, zoom: known, chosen: known, find: kept.get("find") ?? "" };
  };

  const show = (change) => {
    const turned = ["icicle", "zoom", "open", "side", "inverted"].some((key) => key in change);
    Object.assign(state, change);
    tree = treeOf(state.side, state.inverted);
    if ("side" in change || "inverted" in change) seek(search.value.trim());
    turn.textContent = state.icicle ? "Root at the bottom" : "Root at the top";
    trunk.textContent = state.open ? "From the fork" : "All frames";
    trunk.hidden = tree.depth[tree.fork] < 3 && tree.depth[state.zoom] < 3;
    whole.disabled = state.zoom === 0;
    inverted?.setAttribute("aria-pressed", state.inverted);
    for (const [side, made] of sideButtons) made.setAttribute("aria-pressed", state.side === side);
    hush();
    draw();
    tellPath();
    tell(state.chosen);
    remember();
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
  // The outermost boxes that match: one that stands on another is counted with it.
  const towersOf = (names) => {
    const towers = [];
    for (let at = 0; at < tree.count; at++) {
      if (!names[tree.name[at]]) continue;
      towers.push(at);
      at = tree.end[at] - 1;
    }
    return towers;
  };
  const seek = (text) => {
    const matches = text === "" ? null : wanted(text);
    if (text !== "" && !matches) {
      found.textContent = "no pattern yet";
      return;
    }
    const names = matches && data.names.map(([full]) => matches(full));
    state.hits = names && { names, towers: towersOf(names) };
    state.walked = -1;
    draw();
    remember();
    found.textContent = state.hits ? toldMatches() : "";
  };
  const toldMatches = () => {
    const { names, towers } = state.hits;
    const sum = (column) => towers.reduce((sum, at) => sum + column[at], 0);
    let [width, before, after] = data.diff ? [sum(tree.width), sum(tree.before), sum(tree.after)] : [sum(tree.width), 0, 0];
    const many = towers.length;
    // What was folded away is known by function: of several that match, the largest is the least there can be.
    const known = state.side === "" && !state.inverted ? data.totals.filter(([name]) => names[name]) : [];
    const [, was, is] = known.reduce((most, row) => (Math.max(row[1], row[2]) > Math.max(most[1], most[2]) ? row : most), [0, 0, 0]);
    const folded = Math.max(was, is) > (data.diff ? Math.max(before, after) : width) * 1.001;
    if (folded) [width, before, after] = [is, was, is];
    if (many === 0 && !folded) return "nothing matches";
    const what = data.diff ? `${figure(before)} → ${figure(after)} ${data.unit}` : `${share(width, original.width[0])} · ${figure(width)} ${data.unit}`;
    const place = many === 0 ? "in boxes too narrow to be drawn" : folded ? "mostly in boxes too narrow to be drawn" : `in ${many} ${many === 1 ? "tower" : "towers"}`;
    return `${folded && known.length > 1 ? "at least " : ""}${what} ${place}`;
  };
  // To the next match or the one before, zooming only as far as it needs to be seen.
  const walk = (step) => {
    const towers = state.hits?.towers ?? [];
    if (towers.length === 0) return;
    state.walked = (state.walked + step + towers.length) % towers.length;
    const at = towers[state.walked];
    const inTrunk = isBelow(at, tree.fork);
    const visible = drawn.includes(at);
    show(visible ? { chosen: at } : inTrunk ? { chosen: at, open: true, zoom: 0 } : { chosen: at, zoom: Math.max(tree.parent[at], 0) });
    found.textContent = `${state.walked + 1} of ${towers.length} · ${words(at)}`;
  };

  const beside = (step) => {
    const row = drawn.filter((at) => tree.depth[at] === tree.depth[state.chosen]);
    return row[row.indexOf(state.chosen) + step];
  };
  const above = () => drawn.filter((at) => tree.parent[at] === state.chosen).reduce((best, at) => (best === undefined || tree.width[at] > tree.width[best] ? at : best), undefined);
  const below = () => (drawn.includes(tree.parent[state.chosen]) ? tree.parent[state.chosen] : undefined);
  const moves = {
    ArrowUp: () => (state.icicle ? below() : above()),
    ArrowDown: () => (state.icicle ? above() : below()),
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Home: () => standing().base,
  };
  const zoomOut = () => {
    const at = state.zoom === tree.fork ? 0 : Math.max(tree.parent[state.zoom], 0);
    show({ zoom: at, chosen: state.zoom });
  };
  boxes.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key in moves) {
      // Whoever has chosen nothing yet begins where the picture does.
      const at = drawn.includes(state.chosen) ? moves[key]() : standing().base;
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
    if (event.key === "Enter") {
      event.preventDefault();
      walk(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      search.value = "";
      seek("");
      boxes.focus();
    }
  });
  const boxAt = (event) => {
    const g = event.target.closest("g[id]");
    return g && g.id !== "trunk" ? Number(g.id.slice(4)) : undefined;
  };
  svg.addEventListener("click", (event) => {
    if (event.target.closest("#trunk")) {
      show({ open: true });
      return;
    }
    const at = boxAt(event);
    if (at === undefined) return;
    // A finger has no hover: the first tap tells, the second zooms.
    if (event.pointerType === "touch" && at !== state.chosen) {
      show({ chosen: at });
      tellAt(at, event.clientX, event.clientY);
    } else show({ zoom: at, chosen: at });
  });
  svg.addEventListener("pointermove", (event) => {
    const at = boxAt(event);
    if (event.pointerType !== "mouse") return;
    if (at === undefined) hush();
    else {
      tell(at);
      tellAt(at, event.clientX, event.clientY);
    }
  });
  svg.addEventListener("pointerleave", () => {
    hush();
    tell(state.chosen);
  });
  boxes.addEventListener("scroll", hush);

  root.querySelector(".flame-static").after(live);
  document.documentElement.classList.add("scripted");
  // The width of a letter, as this reader's type has it.
  const probe = make("text", {}, svg);
  probe.textContent = "m".repeat(100);
  letter = probe.getComputedTextLength() / 100 || letter;
  const { find, ...begun } = remembered();
  search.value = find;
  show(begun);
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
      walk(1);
      root.scrollIntoView({ block: "start" });
    };
    name.replaceChildren(button(text, act));
  }
};

const island = document.getElementById("flame-data");
const data = island && JSON.parse(island.textContent);
if (data && data.depth.length > 0) flame(document.getElementById("flame"), data);
