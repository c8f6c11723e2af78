// What tables and commands of several sections can do, `parts.html`.
"use strict";
{
  const make = (name, properties) => Object.assign(document.createElement(name), properties);

  // A command gets a button that copies it. A browser may give files no clipboard: then the command
  // is selected, so that the keys for copying do the rest.
  function copyable(command) {
    const button = make("button", {type: "button", textContent: "Copy"});
    button.setAttribute("aria-label", `Copy: ${command.getAttribute("aria-label")}`);
    const told = make("span", {});
    told.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        told.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(command);
        told.textContent = "selected: copy it with the keyboard";
      }
    });
    const line = make("div", {className: "controls copying"});
    line.append(button, told);
    command.after(line);
  }

  // A table whose heads sort it: numbers rise, a second time they fall; what has none stays last.
  // Only the first body is sorted. The order is kept in the address: the number of the column,
  // negative where values fall.
  function sortable(table) {
    const key = `sort-${table.id}`;
    const rows = [...table.tBodies[0].rows];
    const heads = [...table.querySelectorAll("th[data-sort]")];
    const valueOf = (row, column) => parseFloat(row.cells[column].dataset.value ?? "NaN");

    function sort(order) {
      const column = Math.abs(order) - 1;
      const sign = Math.sign(order);
      const sorted = [...rows];
      if (order) {
        sorted.sort((one, other) => {
          const [a, b] = [valueOf(one, column), valueOf(other, column)];
          return Number.isNaN(a) - Number.isNaN(b) || sign * (a - b) || 0;
        });
      }
      for (const head of heads) {
        const on = order && head.cellIndex === column;
        if (on) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      }
      table.tBodies[0].append(...sorted);
    }

    // What somebody wrote into the address by hand may be no column.
    function asked(text) {
      const order = Number.parseInt(text ?? "", 10) || 0;
      return heads.some(head => head.cellIndex === Math.abs(order) - 1) ? order : 0;
    }

    for (const head of heads) {
      const button = make("button", {type: "button", className: "sort"});
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const number = head.cellIndex + 1;
        const order = head.getAttribute("aria-sort") === "ascending" ? -number : number;
        popmodel.state.set(key, order);
        sort(order);
      });
    }
    popmodel.state.watch(key, text => sort(asked(text)));
    sort(asked(popmodel.state.get(key)));
  }

  document.querySelectorAll("pre.command").forEach(copyable);
  document.querySelectorAll("table[data-sortable]").forEach(sortable);
}
