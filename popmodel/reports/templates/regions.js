// Tables of regions sorted by any column, by mouse or keyboard.
"use strict";
popmodel.section("regions", root => {
  root.querySelectorAll(".regions-table").forEach((table, number) => {
    const key = number ? `regions-sort-${number}` : "regions-sort";
    const heads = [...table.tHead.rows[0].cells];
    const original = [...table.tBodies[0].rows];

    // The state is "COLUMN" or "-COLUMN"; without one the order is that of the gains.
    function sort(state) {
      const [, falls, digits] = /^(-?)(\d+)$/.exec(state ?? "") ?? [];
      const column = digits === undefined ? -1 : Number(digits);
      const sign = falls ? -1 : 1;
      const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = column < 2 ? (a, b) => a.localeCompare(b) : (a, b) => parseFloat(a) - parseFloat(b);
      const rows = heads[column] ? original.toSorted((a, b) => sign * compare(value(a), value(b))) : original;
      table.tBodies[0].append(...rows);
      heads.forEach((head, index) => {
        if (index === column) head.setAttribute("aria-sort", falls ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
    }

    heads.forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        // Numbers from the greatest first, names from A; once more turns, then back to the order of gains.
        const first = index < 2 ? "" : "-";
        const states = [`${first}${index}`, `${first ? "" : "-"}${index}`];
        const next = states[states.indexOf(popmodel.state.get(key)) + 1] ?? null;
        popmodel.state.set(key, next);
        sort(next);
      });
    });
    popmodel.state.watch(key, sort);
    sort(popmodel.state.get(key));
  });
});
