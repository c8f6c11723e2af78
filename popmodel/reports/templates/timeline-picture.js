// The picture of a timeline on a canvas: a panel of lanes for the measured run and one for its ideal
// replay, on one axis.
"use strict";

class TimelinePicture {
  static AXIS = 30; // heights in CSS pixels
  static CAPTION = 18;
  static ROWS = {low: [14, 76], high: [26, 3000]}; // of a row and a panel, at most
  static LINE = {low: 16, high: 8}; // width for each line over the lanes: more would hide these

  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    this.forget();
  }

  // Colours are read again: the theme is another one.
  forget() {
    this.colours = new Map();
    this.kept = new Map(); // images of lanes
  }

  // --- Where things are, in CSS pixels --------------------------------------------------------------
  layout({run}, width = this.canvas.clientWidth) {
    const {CAPTION, AXIS, ROWS} = TimelinePicture;
    const [row, most] = ROWS[this.tall ? "high" : "low"];
    this.context.font = this.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
    const names = [...run.labels, run.marks?.what ?? ""];
    const longest = Math.max(...names.map(label => this.wide(label.slice(0, 40))));
    const left = Math.ceil(Math.min(longest + 10, Math.max(width * .25, 104)));
    const height = timelineClamp(run.rows * row, 40, most);
    let y = AXIS;
    const panels = run.panels.map(panel => {
      const top = y + CAPTION;
      y = top + height + 4;
      return {panel, top, height};
    });
    this.boxes = {width, height: y, left, plot: Math.max(width - left, 1), panels};
  }

  get mostLines() { return Math.floor(this.boxes.plot / TimelinePicture.LINE[this.tall ? "high" : "low"]); }
  wide(text) { return this.context.measureText(text).width; }
  x(view, column) { return this.boxes.left + (column - view.from) / view.span * this.boxes.plot; }
  y(view, box, row) { return box.top + (row + .5) / view.run.rows * box.height; }

  // What is at a point: its column, and in a panel its row.
  hit(view, x, y) {
    const {left, plot, panels} = this.boxes;
    const column = view.from + (x - left) / plot * view.span;
    const panel = panels.findIndex(box => y >= box.top && y < box.top + box.height);
    if (panel < 0 || x < left) return {column};
    return {column, panel, row: (y - panels[panel].top) / panels[panel].height * view.run.rows};
  }

  // --- Drawing ----------------------------------------------------------------------------------------
  // options: messages, path (shown or not). Width and ratio are for what is not the screen.
  draw(view, options, width = undefined, ratio = Math.max(devicePixelRatio, 1)) {
    this.layout(view, width);
    const {canvas, context, boxes: {height, left, panels}} = this;
    const [w, h] = [Math.round(this.boxes.width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = this.font;
    context.textBaseline = "middle";
    this.fill("var(--paper)", 0, 0, this.boxes.width, height);
    panels.forEach((box, i) => this.lanes(i, box, view, ratio));
    this.axis(view);
    for (const box of panels) this.over(view, box, options);
    if (view.selected) this.selection(view);
    if (view.cursor) this.cursor(view);
    this.fill("var(--line)", left - 1, 0, 1, height);
  }

  // Lanes of a panel: painted anew only when they show something else.
  lanes(key, {top, height, panel: {cells}}, {from, to, run}, ratio) {
    const {left, plot} = this.boxes;
    const [w, h, gap] = [plot, height, 1].map(size => Math.round(size * ratio));
    const state = [w, h, from, to].join();
    let kept = this.kept.get(key);
    if (kept?.state !== state || kept.cells !== cells) {
      const image = kept?.image.width === w && kept.image.height === h ? kept.image : new ImageData(w, h);
      const colours = run.colours.map(css => this.pixel(css));
      timelineLanes.paint(image, {cells, columns: run.columns, colours, from, to, gap});
      kept = {state, cells, image};
      this.kept.set(key, kept);
    }
    this.context.putImageData(kept.image, Math.round(left * ratio), Math.round(top * ratio));
  }

  fill(style, x, y, width, height, alpha = 1) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = this.css(style);
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  // Draws inside of a box.
  within(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  text(words, x, y, room, style = "var(--ink)") {
    this.within(x, y - 8, room, 16, () => {
      this.context.fillStyle = this.css(style);
      this.context.fillText(words, x, y);
    });
  }

  // Lines in ink with a rim of paper, to be told apart from whatever is below.
  stroke(width, draw) {
    const {context} = this;
    context.beginPath();
    draw(context);
    for (const [style, wide] of [["var(--paper)", width + 2], ["var(--ink)", width]]) {
      context.strokeStyle = this.css(style);
      context.lineWidth = wide;
      context.stroke();
    }
  }

  axis(view) {
    const {run} = view;
    const {left, plot, width} = this.boxes;
    const {AXIS} = TimelinePicture;
    const room = this.wide(timelineData.clock(run)(run.total)) + 12;
    const {step, at} = TimelinePicture.ticks(run.seconds(view.from), run.seconds(view.to), plot / room);
    const clock = timelineData.clock(run, step * 1e9);
    for (const column of at.map(run.column)) {
      const [x, words] = [this.x(view, column), clock(column)];
      this.fill("var(--line)", x, 17, 1, AXIS - 17);
      const wide = this.wide(words);
      if (x + wide / 2 < width && x - wide / 2 > left - 8) this.text(words, x - wide / 2, 10, wide + 1);
    }
    if (run.marks) this.marks(view, AXIS - 8);
  }

  // Moments that are multiples of 1, 2 or 5 times a power of ten: about `many`.
  static ticks(from, to, many) {
    const rough = (to - from) / Math.max(many, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find(one => one * power >= rough) ?? 10);
    const at = [];
    for (let k = Math.ceil(from / step); k * step <= to; k++) at.push(k * step);
    return {step, at};
  }

  // Where iterations begin; of those that are too near to one another the first.
  marks(view, y) {
    const {marks, step} = view.run;
    const {left, plot} = this.boxes;
    this.text(marks.what, 0, y + 3, left - 6, "var(--faint)");
    let last = -Infinity;
    for (const at of marks.at) {
      const x = this.x(view, at / step);
      if (x < left || x > left + plot || x - last < 3) continue;
      this.fill("var(--ink)", x, y, 1, 7);
      last = x;
    }
  }

  // What lies over the lanes of a panel, and its names.
  over(view, box, {messages, path}) {
    const {run} = view;
    const {left, plot} = this.boxes;
    const {panel, top, height} = box;
    const network = panel === run.panels[0] ? "" : ` (${run.network})`;
    this.text(`${panel.title}: ${timelineData.lasting(run, panel.end)}${network}`, left + 4, top - 9, plot - 4);
    const room = height / run.rows, line = Math.max(room, 14);
    for (let row = 0; row < run.rows && (!row || row * room + line <= height + 1); row += Math.ceil(14 / room)) {
      this.text(run.labels[row], 0, top + row * room + line / 2, left - 8);
    }
    this.within(left, top, plot, height, () => {
      this.fill("var(--ink)", this.x(view, panel.end), top, 1.5, height); // the run is over
      if (messages) this.messages(view, box);
      if (path && panel.path) this.path(view, box);
    });
  }

  messages(view, box) {
    const shown = timelineData.inView(view, box.panel.messages);
    if (shown.length > this.mostLines) return;
    const {from, to, begin, end} = box.panel.messages ?? {};
    this.stroke(1, context => {
      for (const i of shown) {
        const [x, y] = [this.x(view, end[i]), this.y(view, box, to[i])];
        const [startX, startY] = [this.x(view, begin[i]), this.y(view, box, from[i])];
        const angle = Math.atan2(y - startY, x - startX);
        const head = side => [x - 6 * Math.cos(angle + side), y - 6 * Math.sin(angle + side)];
        context.moveTo(startX, startY);
        context.lineTo(x, y);
        context.moveTo(...head(-.4));
        context.lineTo(x, y);
        context.lineTo(...head(.4));
      }
    });
  }

  path(view, box) {
    const {row, begin, end} = box.panel.path;
    const shown = timelineData.inView(view, box.panel.path);
    const joined = shown.length <= this.mostLines; // the steps from one row to another are drawn, too
    this.stroke(2, context => {
      for (const i of shown) {
        const y = this.y(view, box, row[i]);
        context[joined && i > shown[0] ? "lineTo" : "moveTo"](this.x(view, begin[i]), y);
        context.lineTo(this.x(view, end[i]), y);
      }
    });
  }

  selection(view) {
    const {left, plot, height} = this.boxes;
    const [a, b] = view.selected.map(column => timelineClamp(this.x(view, column), left, left + plot));
    this.fill("var(--accent)", a, 0, b - a, TimelinePicture.AXIS, .3); // not the lanes: that would change colours
    for (const x of [a, b]) this.fill("var(--accent)", x - 1, 0, 2, height);
  }

  cursor(view) {
    const {row, column, panel} = view.cursor;
    const {left, panels, height} = this.boxes;
    const x = this.x(view, column + .5);
    const top = TimelinePicture.AXIS;
    if (x >= left) this.fill("var(--ink)", x, top, 1, height - top);
    const room = panels[panel].height / view.run.rows;
    const y = panels[panel].top + row * room;
    this.fill("var(--ink)", left - 6, y, 5, Math.max(room - 1, 2));
  }

  // --- Colours ----------------------------------------------------------------------------------------
  // CSS that may name variables, as the canvas understands it.
  css(text) {
    if (!this.colours.has(text)) {
      this.canvas.style.color = text;
      this.colours.set(text, getComputedStyle(this.canvas).color);
    }
    return this.colours.get(text);
  }

  // The same as four bytes of an image, in the order of this machine.
  pixel(text) {
    this.probe.fillStyle = this.css(text);
    this.probe.fillRect(0, 0, 1, 1);
    return new Uint32Array(this.probe.getImageData(0, 0, 1, 1).data.buffer)[0];
  }
}
