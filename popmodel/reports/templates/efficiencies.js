// Trees of efficiencies: one family at a time, and what the chosen metric means and costs. Without
// this script all families stand below each other.
"use strict";
popmodel.section("efficiencies", (root, data) => {
  const families = [...root.querySelectorAll(".efficiencies-family")];
  const panel = root.querySelector(".efficiencies-panel");
  const which = root.querySelector(".efficiencies-which");
  const select = which.querySelector("select");

  // Shows a family, and explains one of its metrics if it has been chosen.
  function show() {
    const asked = popmodel.state.get("family");
    const shown = families.find(one => one.dataset.family === asked) ?? families.find(one => one.dataset.family === data.family);
    const family = shown.dataset.family;
    const metric = popmodel.state.get("metric");
    const name = [...shown.querySelectorAll("h4")].find(one => one.dataset.metric === metric);
    select.value = family;
    for (const one of families) one.hidden = one.dataset.family !== family;
    for (const row of root.querySelectorAll("tr[data-metric]")) {
      if (name && row.dataset.id === metric) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    panel.hidden = !name;
    panel.replaceChildren();
    if (!name) return;
    const title = document.createElement("h3");
    title.textContent = name.textContent;
    panel.append(title);
    // What is told of it stands behind its name, up to the next one.
    for (let one = name.nextElementSibling; one && one.localName !== "h4"; one = one.nextElementSibling) {
      panel.append(one.cloneNode(true));
    }
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
