// A timeline in words: what is at the cursor, what is seen, and the efficiencies of a window.
"use strict";

const timelineWords = (() => {
  // What is at the cursor.
  function cursor({run, cursor: {panel, row, column}}) {
    const {cells, path} = run.panels[panel];
    const clock = timelineData.clock(run);
    const iterations = run.marks?.at.filter(one => one <= column * run.step).length;
    const iteration = !panel && iterations && run.marks.every === 1 ? `, iteration ${run.marks.first + iterations - 1}` : "";
    const place = `${run.labels[row]}, ${panel ? "ideal replay" : "measured"}${iteration}`;
    const [from, to] = timelineLanes.stretch(cells, run.columns, row, column);
    const told = [`${place}, ${clock(column)}: ${run.kinds[cells[row * run.columns + column]].label}`];
    if (path?.row.some((one, i) => one === row && path.begin[i] < column + 1 && path.end[i] > column)) told.push("on the critical path");
    return [...told, `from ${clock(from)} to ${clock(to)} (${timelineData.lasting(run, to - from)})`].join(", ");
  }

  function seen(view) {
    const {run, selected, marked} = view;
    const clock = timelineData.clock(run, Math.min(run.step, view.span * run.step / 1000));
    const range = ([from, to]) => `${clock(from)} to ${clock(to)} (${timelineData.lasting(run, to - from)})`;
    const chosen = selected ? `; selected: ${range(selected)}` : marked === null ? "" : `; marked: ${clock(marked)}`;
    return `Seen: ${range([view.from, view.to])} of ${timelineData.lasting(run, run.total)}${chosen}`;
  }

  // --- Elements: all text is text ---------------------------------------------------------------------
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  const head = text => element("th", {scope: "row"}, text);
  const number = text => element("td", {class: "number"}, text);

  // Every kind that occurs.
  function legend(run) {
    const used = new Set(run.panels.flatMap(({cells}) => [...new Set(cells)]));
    return run.kinds.filter((kind, i) => i && used.has(i)).map(kind =>
      element("span", {}, element("span", {class: "timeline-swatch", style: `background: var(--kind-${kind.id})`, "aria-hidden": "true"}), kind.label));
  }

  // Rows of the table of efficiencies between two edges, beside those of the whole run.
  function metrics(window, family, a, b) {
    const both = [[a, b], [0, window.columns.length - 1]].map(edges => timelineWindow.metrics(window, family, ...edges));
    const exact = (value, text) => number(element("data", {value}, text));
    // Where the replay is far ahead of the run, or behind it, what it did meanwhile tells nothing.
    const apart = known => family.metrics.some(({id, estimate}) => estimate && !(known[id] > -.005 && known[id] < 1.005));
    const cell = ({id, estimate}) => known => {
      if (estimate && apart(known)) return number("no estimate");
      return known[id] === null ? number("undefined") : exact(known[id], `${estimate ? "≈ " : ""}${popmodel.percent(known[id])}`);
    };
    const runtime = known => exact(known.runtime / 1e9, popmodel.time(known.runtime / 1e9));
    return [
      element("tr", {}, head("runtime"), ...both.map(runtime)),
      ...family.metrics.map(metric => {
        const name = head(metric.name);
        name.style.paddingLeft = `${metric.depth}em`;
        return element("tr", {"data-metric": metric.id}, name, ...both.map(cell(metric)));
      }),
    ];
  }

  return {cursor, seen, legend, metrics};
})();
