// Trees of efficiencies: one family at a time, and what the chosen metric means and costs. Without
// this script all families stand below each other.
"use strict";
popmodel.section("efficiencies", (root, data) => {
  const families = [...root.querySelectorAll(".efficiencies-family")];
  const panel = root.querySelector(".efficiencies-panel");
  const which = root.querySelector(".efficiencies-which");
  const select = which.querySelector("select");

  function add(parent, name, text = "", kind = "") {
    const element = document.createElement(name);
    element.textContent = text;
    if (kind) element.className = kind;
    parent.append(element);
    return element;
  }

  // Shows a family, and explains one of its metrics if it has been chosen.
  function show() {
    const asked = popmodel.state.get("family");
    const family = Object.hasOwn(data.shares, asked ?? "") ? asked : data.family;
    const metric = popmodel.state.get("metric");
    const known = Object.hasOwn(data.shares[family], metric ?? "");
    select.value = family;
    for (const one of families) one.hidden = one.dataset.family !== family;
    for (const row of root.querySelectorAll("tr[data-metric]")) {
      if (known && row.dataset.id === metric) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    panel.hidden = !known;
    panel.replaceChildren();
    if (!known) return;
    const shown = families.find(one => one.dataset.family === family);
    const name = [...shown.querySelectorAll("h4")].find(one => one.dataset.metric === metric);
    add(panel, "h3", name.textContent);
    panel.append(costs(data.shares[family][metric]));
    // What is told of it stands behind its name, up to the next one.
    for (let one = name.nextElementSibling; one && one.localName !== "h4"; one = one.nextElementSibling) {
      panel.append(one.cloneNode(true));
    }
  }

  // What the metric costs each run: per thread, of all threads, and as a part of all core time.
  function costs(shares) {
    const box = document.createElement("div");
    box.className = "wide";
    const table = add(box, "table");
    add(table, "caption", "Time lost: by each thread on average, by all, as a share of their time");
    const head = add(add(table, "thead"), "tr");
    for (const text of ["Run", "each", "all", "share"]) {
      add(head, "th", text, text === "Run" ? "" : "number").scope = "col";
    }
    const body = add(table, "tbody");
    shares.forEach((share, index) => {
      const run = data.runs[index];
      const line = add(body, "tr");
      add(line, "th", run.name).scope = "row";
      const times = [share * run.runtime, share * run.runtime * run.threads].map(one => popmodel.time(one, 3));
      for (const text of [...times, popmodel.percent(share)]) add(line, "td", share === null ? "-" : text, "number");
    });
    return box;
  }

  for (const one of families) {
    select.append(new Option(one.querySelector("h3").textContent, one.dataset.family));
    const names = [...one.querySelectorAll("h4")];
    for (const row of one.querySelectorAll("tr[data-metric]")) {
      row.dataset.id = names[Number(row.dataset.metric)].dataset.metric;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...row.cells[0].childNodes);
      row.cells[0].append(button);
      button.addEventListener("click", () => {
        popmodel.state.set("metric", popmodel.state.get("metric") === row.dataset.id ? null : row.dataset.id);
        show();
        panel.scrollIntoView({block: "nearest"});
      });
    }
  }
  which.hidden = families.length < 2;
  select.addEventListener("change", () => {
    popmodel.state.set("family", select.value);
    show();
  });
  popmodel.state.watch("family", show);
  popmodel.state.watch("metric", show);
  show();
});
