// Trees of efficiencies: one family at a time, rows that fold, the chosen metric explained beside
// them. Without this script all families stand below each other.
"use strict";
popmodel.section("efficiencies", (root, data) => {
  const families = [...root.querySelectorAll(".efficiencies-family")];
  const panel = root.querySelector(".efficiencies-panel");
  const rows = [...root.querySelectorAll("tr[data-depth]")];
  // A row has the number of its metric among those that are explained below its tree.
  const explained = new Map(families.map(one => [one.dataset.family, [...one.querySelectorAll("h4")]]));
  function nameOf(row) {
    const {family} = row.closest(".efficiencies-family").dataset;
    return [family, explained.get(family)[Number(row.dataset.metric)].dataset.metric];
  }
  const shown = {family: "", metric: ""};

  // --- Families ---------------------------------------------------------------------------------
  const buttons = new Map();

  function addButtons() {
    const bar = root.querySelector("[data-families]");
    if (families.length < 2) return;
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Family of metrics");
    for (const one of families) {
      const id = one.dataset.family;
      const button = add(bar, "button", one.querySelector("h3").textContent);
      button.type = "button";
      button.addEventListener("click", () => choose(id, shown.metric, true));
      buttons.set(id, button);
    }
    bar.hidden = false;
  }

  // Shows a family and explains one of its metrics; what the family lacks gives way to its lowest.
  function choose(family, metric, byUser = false) {
    if (!Object.hasOwn(data.shares, family)) family = data.family;
    if (!Object.hasOwn(data.shares[family], metric)) metric = data.metric[family];
    Object.assign(shown, {family, metric});
    for (const one of families) one.hidden = one.dataset.family !== family;
    for (const [id, button] of buttons) button.setAttribute("aria-pressed", id === family);
    for (const row of rows) {
      const [rowFamily, rowMetric] = nameOf(row);
      row.setAttribute("aria-selected", rowFamily === family && rowMetric === metric);
    }
    explain();
    if (!byUser) return;
    popmodel.state.set("family", family);
    popmodel.state.set("metric", metric);
  }

  // --- The panel --------------------------------------------------------------------------------
  function explain() {
    const name = explained.get(shown.family).find(one => one.dataset.metric === shown.metric);
    panel.replaceChildren();
    add(panel, "h3", name.textContent);
    panel.append(costs());
    // What is told of it stands behind its name, up to the next one.
    for (let one = name.nextElementSibling; one && one.localName !== "h4"; one = one.nextElementSibling) {
      panel.append(one.cloneNode(true));
    }
    panel.hidden = false;
    arrange();
  }

  // The panel stands beside the trees, but below one that then has too little room and else enough.
  function arrange() {
    const layout = panel.parentElement;
    layout.classList.add("efficiencies-explained");
    const boxes = [...root.querySelectorAll(".efficiencies-family:not([hidden]) .wide")];
    const least = Math.max(...boxes.map(box => box.scrollWidth));
    const beside = boxes.every(box => box.scrollWidth <= box.clientWidth);
    layout.classList.toggle("efficiencies-explained", beside || least > layout.clientWidth);
  }

  // What the metric costs each run: per thread, of all threads, and as a part of all core time.
  function costs() {
    const box = document.createElement("div");
    box.className = "wide";
    const table = add(box, "table");
    add(table, "caption", "Time lost: by each thread on average, by all, as a share of their time");
    const head = add(add(table, "thead"), "tr");
    for (const text of ["Run", "each", "all", "share"]) {
      add(head, "th", text, text === "Run" ? "" : "number").scope = "col";
    }
    const body = add(table, "tbody");
    data.shares[shown.family][shown.metric].forEach((share, index) => {
      const run = data.runs[index];
      const known = share !== null;
      const line = add(body, "tr");
      add(line, "th", run.name).scope = "row";
      add(line, "td", known ? popmodel.time(share * run.runtime, 3) : "-", "number");
      add(line, "td", known ? popmodel.time(share * run.runtime * run.threads, 3) : "-", "number");
      add(line, "td", known ? popmodel.percent(share) : "-", "number");
    });
    return box;
  }

  function add(parent, name, text = "", kind = "") {
    const element = document.createElement(name);
    element.textContent = text;
    if (kind) element.className = kind;
    parent.append(element);
    return element;
  }

  // --- Rows that fold: a tree of the pattern "treegrid" of the ARIA Authoring Practices ------------
  function unfold(table) {
    const own = [...table.querySelectorAll("tbody tr")];
    const depth = row => Number(row.dataset.depth);
    const below = row => {
      const rest = own.slice(own.indexOf(row) + 1);
      const end = rest.findIndex(other => depth(other) <= depth(row));
      return end < 0 ? rest : rest.slice(0, end);
    };
    const above = row => own.slice(0, own.indexOf(row)).findLast(other => depth(other) < depth(row));
    const visible = () => own.filter(row => !row.hidden);

    function fold(row, open) {
      if (!row.hasAttribute("aria-expanded")) return;
      row.setAttribute("aria-expanded", open);
      // What is folded further down stays so.
      const closed = [];
      for (const other of below(row)) {
        while (closed.length && depth(other) <= depth(closed.at(-1))) closed.pop();
        other.hidden = !open || closed.length > 0;
        if (other.getAttribute("aria-expanded") === "false") closed.push(other);
      }
    }

    function focus(row) {
      if (!row) return;
      for (const other of own) other.tabIndex = other === row ? 0 : -1;
      row.focus();
    }

    const isOpen = row => row.getAttribute("aria-expanded") === "true";
    const keys = {
      ArrowDown: row => focus(visible()[visible().indexOf(row) + 1]),
      ArrowUp: row => focus(visible()[visible().indexOf(row) - 1]),
      ArrowRight: row => isOpen(row) ? focus(below(row)[0]) : fold(row, true),
      ArrowLeft: row => isOpen(row) ? fold(row, false) : focus(above(row)),
      Home: () => focus(visible()[0]),
      End: () => focus(visible().at(-1)),
      Enter: row => choose(...nameOf(row), true),
      " ": row => choose(...nameOf(row), true),
    };

    table.setAttribute("role", "treegrid");
    table.setAttribute("aria-label", table.parentElement.getAttribute("aria-label"));
    own.forEach((row, index) => {
      row.setAttribute("role", "row");
      row.setAttribute("aria-level", depth(row) + 1);
      if (below(row).length) row.setAttribute("aria-expanded", true);
      row.tabIndex = index ? -1 : 0;
      const sign = document.createElement("span");
      sign.className = "efficiencies-fold";
      sign.setAttribute("aria-hidden", "true");
      row.cells[0].prepend(sign);
    });
    table.addEventListener("keydown", event => {
      const row = event.target.closest("tbody tr");
      if (!row || event.altKey || event.ctrlKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key](row);
    });
    table.addEventListener("click", event => {
      const row = event.target.closest("tbody tr");
      if (!row) return;
      focus(row);
      if (event.target.closest(".efficiencies-fold") && row.hasAttribute("aria-expanded")) {
        fold(row, !isOpen(row));
        return;
      }
      choose(...nameOf(row), true);
      panel.scrollIntoView({block: "nearest"});
    });
  }

  addButtons();
  for (const table of root.querySelectorAll(".efficiencies-tree")) unfold(table);
  const fromState = () => choose(popmodel.state.get("family"), popmodel.state.get("metric"));
  popmodel.state.watch("family", fromState);
  popmodel.state.watch("metric", fromState);
  fromState();
});
