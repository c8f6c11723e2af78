// A timeline in words: what is at the cursor, what is seen, and the same as tables.
"use strict";

const timelineWords = (() => {
  // What is at the cursor. `binned`: of all that shares its pixel, or of this cell alone.
  function cursor(view, picture, by, binned) {
    const {run, cursor: {panel, row, column}} = view;
    const {cells, names} = timelineData.layer(run, run.panels[panel], by);
    const clock = timelineData.clock(run);
    const iterations = run.marks?.at.filter(one => one <= column * run.step).length;
    const iteration = !panel && iterations && run.marks.every === 1 ? `, iteration ${run.marks.first + iterations - 1}` : "";
    const place = `${run.labels[row]}, ${panel ? "ideal replay" : "measured"}${iteration}`;
    const [rows, columns] = picture.together(view, view.cursor);
    const others = rows[1] - rows[0] - 1;
    if (binned && (others || columns[1] - columns[0] > 1)) {
      const shares = timelineLanes.count(cells, run.columns, rows, columns, new Int32Array(names.length));
      const more = others ? ` and ${others} more ${others > 1 ? "rows" : "row"}` : "";
      return `${place}${more}, ${clock(column)} to ${clock(columns[1])}: ${mixture(shares, names)}`;
    }
    const at = row * run.columns + column;
    const [from, to] = timelineLanes.stretch(cells, run.columns, row, column);
    const told = [`${place}, ${clock(column)}: ${names[cells[at]].name}`];
    if (!panel && by === "region") told.push(run.kindNames[run.panels[0].cells[at]].name);
    if (!panel && by === "kind" && run.byRegion?.[at]) told.push(run.regionNames[run.byRegion[at]].name);
    const {path} = run.panels[panel];
    if (path?.row.some((one, i) => one === row && path.begin[i] < column + 1 && path.end[i] > column)) told.push("on the critical path");
    told.push(...traffic(run.panels[panel].messages, row, from, to));
    return [...told, `from ${clock(from)} to ${clock(to)} (${timelineData.lasting(run, to - from)})`].join(", ");
  }

  // Messages that a row sends and receives between two columns, of those that are known.
  function traffic(messages, row, from, to) {
    if (!messages) return [];
    const among = messages.shown < messages.count ? " of those drawn" : "";
    const told = (verb, rows, times) => {
      const found = [...rows.keys()].filter(i => rows[i] === row && times[i] >= from && times[i] < to);
      const size = popmodel.size(found.reduce((bytes, i) => bytes + messages.bytes[i], 0));
      return found.length && `${verb} ${found.length} ${found.length > 1 ? "messages" : "message"}${among} (${size})`;
    };
    return [told("sends", messages.from, messages.begin), told("receives", messages.to, messages.end)].filter(Boolean);
  }

  function mixture(shares, names) {
    const all = shares.reduce((sum, one) => sum + one, 0);
    return [...shares.keys()].filter(i => shares[i]).sort((i, k) => shares[k] - shares[i])
      .map(i => `${popmodel.percent(shares[i] / all, 0)} ${names[i].name}`).join(", ");
  }

  function seen(view) {
    const {run, selected, marked} = view;
    const clock = timelineData.clock(run, Math.min(run.step, view.span * run.step / 1000));
    const range = ([from, to]) => `${clock(from)} to ${clock(to)} (${timelineData.lasting(run, to - from)})`;
    const rows = view.rows < run.rows ? `, ${run.labels[view.first]} to ${run.labels[view.last - 1]}` : "";
    const chosen = selected ? `; selected: ${range(selected)}` : marked === null ? "" : `; marked: ${clock(marked)}`;
    return `Seen: ${range([view.from, view.to])} of ${timelineData.lasting(run, run.total)}${rows}${chosen}`;
  }

  // --- Elements: all text is text ---------------------------------------------------------------------
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  const head = (text, scope, more = {}) => element("th", {scope, ...more}, text);
  const number = text => element("td", {class: "number"}, text);

  // One button for every kind that occurs: pressed while it is coloured.
  function legend({run}, {by, hidden}, toggle) {
    const parts = [];
    for (const panel of run.panels) {
      const {cells, names} = timelineData.layer(run, panel, by);
      const shares = timelineLanes.count(cells, cells.length, [0, 1], [0, cells.length], new Int32Array(names.length));
      const used = names.filter((one, i) => i && shares[i] && !parts.some(part => part.value === one.key));
      if (by === "region" && used.length) parts.push(element("span", {}, panel === run.panels[0] ? "Measured:" : "Ideal replay:"));
      for (const {key, name, css} of used) {
        const swatch = element("span", {class: "timeline-swatch", "aria-hidden": "true"});
        swatch.style.background = css;
        const button = element("button", {type: "button", value: key, "aria-pressed": !hidden.has(key)}, swatch, name);
        button.addEventListener("click", () => toggle(button));
        parts.push(button);
      }
    }
    return parts;
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
      element("tr", {}, head("runtime", "row"), ...both.map(runtime)),
      ...family.metrics.map(metric => {
        const name = head(metric.name, "row");
        name.style.paddingLeft = `${metric.depth}em`;
        return element("tr", {"data-metric": metric.id}, name, ...both.map(cell(metric)));
      }),
    ];
  }

  // The picture as a table: time of each kind by row and panel, in what is seen or selected.
  function table({run, window: [from, to]}) {
    const columns = [Math.floor(from), Math.min(Math.ceil(to), run.columns)];
    const counted = run.panels.map(({cells}) => run.labels.map((_, row) =>
      timelineLanes.count(cells, run.columns, [row, row + 1], columns, new Int32Array(run.kinds.length))));
    const used = [...run.kinds.keys()].filter(kind => kind && counted.flat().some(shares => shares[kind]));
    const body = (panel, i) => element("tbody", {},
      element("tr", {}, head(panel.title, "rowgroup", {colspan: used.length + 1, class: "timeline-group"})),
      ...run.labels.map((label, row) => element("tr", {}, head(label, "row"),
        ...used.map(kind => number(timelineData.lasting(run, counted[i][row][kind]))))));
    const clock = timelineData.clock(run);
    return [
      element("caption", {}, `Time of each kind from ${clock(columns[0])} to ${clock(columns[1])}, `
        + `in steps of ${timelineData.lasting(run, 1)}: what takes most of a step has it all`),
      element("thead", {}, element("tr", {}, head("row", "col"),
        ...used.map(kind => head(run.kinds[kind].label, "col", {class: "number timeline-kind"})))),
      ...run.panels.map(body),
    ];
  }

  return {cursor, seen, legend, metrics, table};
})();
