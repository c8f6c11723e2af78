// What of a run is seen: a stretch of time, a selection, a cursor. Changes keep all of it inside the
// run.
"use strict";

class TimelineView {
  static LEAST = 8; // columns: deeper there is nothing to see

  constructor(run) {
    this.run = run;
    this.selected = null; // [from, to]
    this.marked = null; // one end of a selection that has no other yet
    this.cursor = null; // {panel, row, column}
    this.whole();
  }

  whole() { [this.from, this.to] = [0, this.run.total]; }
  get span() { return this.to - this.from; }
  get all() { return this.span >= this.run.total; }
  get window() { return this.selected ?? [this.from, this.to]; }

  show(from, to) {
    [this.from, this.to] = [from, to];
    this.zoom(1);
  }

  // `at` stays where it is on the screen.
  zoom(factor, at = (this.from + this.to) / 2) {
    const {total} = this.run;
    const span = Math.min(Math.max(this.span * factor, Math.min(TimelineView.LEAST, total)), total);
    this.from = timelineClamp(at - (at - this.from) / this.span * span, 0, total - span);
    this.to = this.from + span;
  }

  pan(columns) {
    const {span} = this;
    this.from = timelineClamp(this.from + columns, 0, this.run.total - span);
    this.to = this.from + span;
  }

  select(one, other) {
    const [from, to] = [Math.min(one, other), Math.max(one, other)].map(at => timelineClamp(at, 0, this.run.total));
    this.selected = to > from ? [from, to] : null;
    this.marked = null;
  }

  // One end of a selection, then the other.
  mark(column) {
    if (this.marked !== null) return this.select(this.marked, column);
    this.select(column, column);
    this.marked = column;
  }

  put(cursor) {
    const inside = (value, end) => timelineClamp(Math.floor(value), 0, end - 1);
    this.cursor = cursor && {
      panel: cursor.panel, row: inside(cursor.row, this.run.rows), column: inside(cursor.column, this.run.columns),
    };
  }

  // As text: "1.25..2.5" in seconds of the trace.
  text(range) {
    return range && range.map(column => this.run.seconds(column).toFixed(9).replace(/\.?0+$/, "")).join("..");
  }

  read(text) {
    const [from, to] = (text ?? "").split("..").map(one => this.run.column(parseFloat(one)));
    return from < to ? [from, to] : null;
  }
}

function timelineClamp(value, least, most) {
  return Math.min(Math.max(value, least), most);
}
