// The matrix of who sends to whom: what it shows, and what is in the cell that is pointed at.
"use strict";
popmodel.section("communication", async (root, data) => {
  const SHADES = 9; // as in the style
  const ROWS = 256; // more are not told apart on a screen
  const SVG = "http://www.w3.org/2000/svg";
  const written = {bytes: popmodel.size, messages: popmodel.count, mean: popmodel.size};
  const elements = [...root.querySelectorAll(".communication-run")];

  // --- Data: pairs of ranks, added up over the cells that there is room for ----------------------
  async function pairs(run) {
    const get = name => popmodel.unpack(`communication-${run}-${name}`);
    const [rise, offset, messages, bytes] =
      await Promise.all(["rise", "offset", "messages", "bytes"].map(get));
    const within = data.runs[run].nodes ? await get("within") : null;
    let sender = 0;
    const from = Float64Array.from(rise, step => (sender += step));
    return {from, offset, messages, bytes, within};
  }

  function binned(found, {processes, together}, where) {
    const each = Math.ceil(Math.ceil(processes / ROWS) / together) * together;
    const rows = Math.ceil(processes / each);
    const messages = new Float64Array(rows * rows);
    const bytes = new Float64Array(rows * rows);
    for (let i = 0; i < found.from.length; i++) {
      if (where && (where === "within") !== Boolean(found.within[i])) continue;
      const to = found.from[i] + found.offset[i];
      const cell = Math.floor(found.from[i] / each) * rows + Math.floor(to / each);
      messages[cell] += found.messages[i];
      bytes[cell] += found.bytes[i];
    }
    const mean = bytes.map((size, cell) => (messages[cell] ? size / messages[cell] : 0));
    return {each, rows, messages, bytes, mean};
  }

  // Classes from a power of two to another, at most as many as there are shades.
  function scale(values) {
    const powers = values.filter(value => value > 0).map(value => Math.floor(Math.log2(value)));
    if (!powers.length) return {shade: () => 0, ends: []};
    const low = powers.reduce((a, b) => Math.min(a, b));
    const octaves = powers.reduce((a, b) => Math.max(a, b)) - low + 1;
    const step = Math.ceil(octaves / SHADES);
    const classes = Math.ceil(octaves / step);
    const shaded = number => (classes === 1 ? SHADES
      : 1 + Math.floor(number * (SHADES - 1) / (classes - 1) + 0.5));
    return {
      shade: value => (value > 0 ? shaded(Math.floor((Math.floor(Math.log2(value)) - low) / step)) : 0),
      ends: Array.from({length: classes}, (_, number) => [shaded(number), 2 ** (low + number * step)]),
    };
  }

  // --- Drawing ------------------------------------------------------------------------------------
  function make(name, attributes) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  // One path of each shade, around neighbours in a row together.
  function outlines({each, rows}, values, shade) {
    const paths = new Map();
    for (let row = 0; row < rows; row++) {
      for (let column = 0, end; column < rows; column = end) {
        const mine = shade(values[row * rows + column]);
        end = column + 1;
        while (end < rows && shade(values[row * rows + end]) === mine) end++;
        if (!mine) continue;
        const width = (end - column) * each;
        const path = `M${column * each} ${row * each}h${width}v${each}h-${width}z`;
        paths.set(mine, (paths.get(mine) ?? "") + path);
      }
    }
    return [...paths].map(([mine, path]) => make("path", {class: `communication-${mine}`, d: path}));
  }

  function legend(element, name, ends) {
    const entries = ends.map(([shade, low]) => {
      const entry = document.createElement("span");
      const swatch = document.createElement("i");
      swatch.className = `communication-${shade}`;
      entry.append(swatch, written[name](low));
      return entry;
    });
    const title = document.createElement("span");
    title.textContent = `${name === "mean" ? "mean size" : name}, from:`;
    element.replaceChildren(title, ...entries);
  }

  // --- A matrix -----------------------------------------------------------------------------------
  async function matrix(element, run) {
    const svg = element.querySelector("svg");
    if (!svg) return;
    const facts = data.runs[run];
    const found = await pairs(run);
    const cells = svg.querySelector(".communication-cells");
    const perRank = Number(cells.dataset.scale);
    const corner = cells.getAttribute("transform").match(/translate\(\S+ \S+\)/)[0];
    const [left, top] = corner.match(/[\d.]+/g).map(Number);
    const told = element.querySelector(".communication-told");
    const note = element.querySelector(".communication-each");
    const cursor = make("rect", {class: "communication-cursor", visibility: "hidden"});
    let sums, at;

    function draw() {
      const asked = popmodel.state.get("communication.show");
      const name = Object.hasOwn(written, asked ?? "") ? asked : facts.show;
      const where = facts.nodes ? popmodel.state.get("communication.pairs") : null;
      sums = binned(found, facts, ["within", "between"].includes(where) ? where : null);
      const {shade, ends} = scale(sums[name]);
      cells.setAttribute("transform", `${corner} scale(${perRank})`);
      cells.replaceChildren(...outlines(sums, sums[name], shade), cursor);
      legend(element.querySelector(".communication-legend"), name, ends);
      for (const button of element.querySelectorAll(".communication-controls button")) {
        button.setAttribute("aria-pressed", button.value === name);
      }
      const select = element.querySelector(".communication-where");
      if (select) select.value = where ?? "";
      if (note) {
        note.textContent = `A cell is the sum over ${sums.each} x ${sums.each} ranks.`;
        note.hidden = sums.each === 1;
      }
      if (at) tell(...at);
      else told.textContent = "Point at a cell, or choose it with the arrow keys; with Shift the next that has messages.";
    }

    function ranks(row) {
      const last = Math.min((row + 1) * sums.each, facts.processes) - 1;
      return row * sums.each === last ? `rank ${last}` : `ranks ${row * sums.each}-${last}`;
    }

    function tell(row, column) {
      at = [row, column];
      const cell = row * sums.rows + column;
      const number = sums.messages[cell];
      const between = `${ranks(row)} to ${ranks(column)}`;
      told.textContent = number
        ? `${between}: ${popmodel.size(sums.bytes[cell])} in ${popmodel.count(number)} `
          + `${number === 1 ? "message" : "messages"}, ${popmodel.size(sums.mean[cell])} each`
        : `${between}: no messages`;
      const place = {x: column, y: row, width: 1, height: 1};
      for (const [key, value] of Object.entries(place)) cursor.setAttribute(key, value * sums.each);
      cursor.setAttribute("visibility", "visible");
    }

    for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, event => {
      const box = svg.getBoundingClientRect();
      const zoom = svg.viewBox.baseVal.width / box.width / (perRank * sums.each);
      const pixels = box.width / svg.viewBox.baseVal.width;
      const column = Math.floor((event.clientX - box.left - left * pixels) * zoom);
      const row = Math.floor((event.clientY - box.top - top * pixels) * zoom);
      if (row >= 0 && column >= 0 && row < sums.rows && column < sums.rows) tell(row, column);
    });

    // Arrow keys go to the next cell, with Shift to the next one that has messages.
    svg.addEventListener("keydown", event => {
      const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (!step) return;
      event.preventDefault();
      let [row, column] = at ?? [0, 0];
      const inside = () => row >= 0 && column >= 0 && row < sums.rows && column < sums.rows;
      if (at) {
        do {
          row += step[0];
          column += step[1];
        } while (event.shiftKey && inside() && !sums.messages[row * sums.rows + column]);
      }
      if (inside()) tell(row, column);
    });

    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "application");
    told.id = `communication-told-${run}`;
    svg.setAttribute("aria-describedby", told.id);
    const controls = element.querySelector(".communication-controls");
    controls.hidden = false;
    controls.addEventListener("click", event => {
      if (event.target.matches("button")) choose("show", event.target.value);
    });
    controls.querySelector("select")?.addEventListener("change", event => choose("pairs", event.target.value));
    drawings.push(draw);
    draw();
  }

  // --- What is chosen, of all matrices ------------------------------------------------------------
  const drawings = [];
  function choose(key, value) {
    popmodel.state.set(`communication.${key}`, value);
    for (const draw of drawings) draw();
  }
  for (const key of ["show", "pairs"]) {
    popmodel.state.watch(`communication.${key}`, () => drawings.forEach(draw => draw()));
  }
  for (const [run, element] of elements.entries()) await matrix(element, run);

  const which = root.querySelector(".communication-which");
  if (!which) return;
  const select = which.querySelector("select");
  function show(run) {
    const known = run !== null && elements[Number(run)] ? Number(run) : data.run;
    select.value = known;
    elements.forEach((element, number) => { element.hidden = number !== known; });
  }
  select.addEventListener("change", () => {
    popmodel.state.set("communication.run", Number(select.value) === data.run ? null : select.value);
    show(select.value);
  });
  popmodel.state.watch("communication.run", show);
  show(popmodel.state.get("communication.run"));
  which.hidden = false;
});
