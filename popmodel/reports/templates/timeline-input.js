// Wheel, pointer, touch and keys on the picture of a timeline.
//
// A plain wheel scrolls the page, unless the picture has the focus: then it zooms, until the whole
// run is seen. With Ctrl (which is also what pinching a touchpad sends) it always zooms.
"use strict";

// `now` tells the view, the options and whether dragging selects; `changed(by)` is told of changes,
// by the "pointer" alone, by a "step" of the cursor, by other "keys". What is returned does what a
// key does.
function timelineInput(picture, now, changed) {
  const {canvas} = picture;
  const point = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("wheel", event => {
    const {view} = now;
    const {ctrlKey, altKey, shiftKey, deltaY} = event;
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const sideways = shiftKey ? event.deltaX || deltaY : event.deltaX;
    const {column, row} = picture.hit(view, ...point(event));
    if (Math.abs(sideways) > Math.abs(deltaY) || shiftKey) {
      view.pan(sideways * pixels / picture.boxes.plot * view.span);
    } else {
      const inside = document.activeElement === canvas && !(deltaY > 0 && view.all);
      if (!ctrlKey && !altKey && !inside) return; // the page scrolls
      const factor = Math.exp(timelineClamp(deltaY * pixels, -200, 200) * .003);
      if (altKey) view.zoomRows(factor, row);
      else view.zoom(factor, column);
    }
    event.preventDefault();
    changed();
  }, {passive: false});

  // --- Pointers: one moves or selects, two pinch ----------------------------------------------------
  const pointers = new Map();
  let drag = null; // where it began, and what was seen then

  const begin = (kind, [x, y], column, moved = false) => {
    const {from, to, first, last} = now.view;
    drag = {kind, x, y, column, moved, from, to, first, last, spread: spread()};
  };

  canvas.addEventListener("pointerdown", event => {
    if (event.button) return;
    const at = point(event);
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at);
    const {overview, column} = picture.hit(now.view, ...at);
    begin(overview !== undefined ? "overview" : now.selecting !== event.shiftKey ? "select" : "move", at, column);
    if (overview !== undefined) centre(overview);
  });

  canvas.addEventListener("pointermove", event => {
    const {view} = now;
    const [x, y] = point(event);
    const hit = picture.hit(view, x, y);
    if (!pointers.has(event.pointerId)) {
      view.put(hit.panel === undefined ? null : hit);
      changed("pointer");
      return;
    }
    pointers.set(event.pointerId, [x, y]);
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 3;
    if (pointers.size === 2) pinch(view);
    else if (drag.kind === "overview") centre(picture.hit(view, x, 0).overview);
    else if (!drag.moved) return;
    else if (drag.kind === "select") view.select(drag.column, hit.column);
    else move(view, x, y);
    changed();
  });

  const end = event => {
    if (!pointers.delete(event.pointerId)) return;
    const hit = picture.hit(now.view, ...point(event));
    if (!drag.moved && event.type === "pointerup" && hit.panel !== undefined) {
      now.view.put(hit);
      changed("pointer");
    }
    const [stays] = pointers.values();
    if (stays) begin("move", stays, 0, true);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);

  canvas.addEventListener("pointerleave", () => {
    if (document.activeElement === canvas || pointers.size) return;
    now.view.put(null);
    changed("pointer");
  });

  canvas.addEventListener("dblclick", event => {
    const {view} = now;
    const {column} = picture.hit(view, ...point(event));
    if (view.selected && column >= view.selected[0] && column <= view.selected[1]) view.show(...view.selected);
    else view.zoom(.5, column);
    changed();
  });

  function centre(column) {
    now.view.pan(column - (now.view.from + now.view.to) / 2);
    changed();
  }

  function move(view, x, y) {
    const {plot, panels: [{height}]} = picture.boxes;
    view.show(drag.from, drag.to);
    view.pan((drag.x - x) / plot * view.span);
    const down = (drag.y - y) / height * view.rows;
    if (view.rows < view.run.rows) view.showRows(drag.first + down, drag.last + down);
  }

  function spread() {
    const [one, other] = pointers.values();
    return other && {distance: Math.max(Math.abs(one[0] - other[0]), 20), middle: (one[0] + other[0]) / 2};
  }

  function pinch(view) {
    const {distance, middle: x} = spread();
    const share = at => (at - picture.boxes.left) / picture.boxes.plot;
    const column = drag.from + share(drag.spread.middle) * (drag.to - drag.from);
    const span = (drag.to - drag.from) * drag.spread.distance / distance;
    view.show(column - share(x) * span, column + (1 - share(x)) * span);
  }

  // --- Keys: as said below the picture; W A S D as in other viewers of traces ----------------------------
  const middle = view => {
    const column = view.cursor?.column;
    return column >= view.from && column < view.to ? column : undefined;
  };
  const KEYS = {
    "+": view => view.zoom(.5, middle(view)),
    "-": view => view.zoom(2, middle(view)),
    ArrowLeft: view => view.pan(-view.span / 10),
    ArrowRight: view => view.pan(view.span / 10),
    Home: view => view.pan(-view.run.total),
    End: view => view.pan(view.run.total),
    0: view => view.whole(),
    Enter: view => view.selected && view.show(...view.selected),
    Escape: view => view.select(0, 0),
    m: view => view.mark(start(view).column),
    "Alt+ArrowUp": view => view.zoomRows(.5, view.cursor?.row),
    "Alt+ArrowDown": view => view.zoomRows(2, view.cursor?.row),
  };
  const STEPS = {
    ArrowUp: view => step(view, -1),
    ArrowDown: view => step(view, 1),
    "Shift+ArrowLeft": view => jump(view, -1),
    "Shift+ArrowRight": view => jump(view, 1),
  };
  const SAME = {"=": "+", w: "+", s: "-", a: "ArrowLeft", d: "ArrowRight"};

  function start(view) {
    if (!view.cursor) view.put({panel: 0, row: view.first, column: (view.from + view.to) / 2});
    return view.cursor;
  }

  // To the next row; after the last one of a panel comes the first one of the next.
  function step(view, by) {
    const {rows, panels} = view.run;
    const moved = view.cursor ? by : 0; // at first it only appears
    const {panel, row, column} = start(view);
    const to = timelineClamp(panel * rows + row + moved, 0, rows * panels.length - 1);
    view.put({panel: Math.floor(to / rows), row: to % rows, column});
    view.follow();
  }

  // To where the colour of the row changes.
  function jump(view, by) {
    const at = start(view);
    const {cells} = timelineData.layer(view.run, view.run.panels[at.panel], now.options.by);
    const stretch = column => timelineLanes.stretch(cells, view.run.columns, at.row, column);
    const [from, to] = stretch(at.column);
    view.put({...at, column: by > 0 ? to : stretch(Math.max(from - 1, 0))[0]});
    view.follow();
  }

  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey) return;
    const held = event.altKey ? "Alt+" : event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : "";
    const key = held + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
    const act = KEYS[SAME[key] ?? key] ?? STEPS[key];
    if (!act) return;
    act(now.view);
    event.preventDefault();
    changed(STEPS[key] ? "step" : "keys");
  });

  return key => {
    KEYS[key](now.view);
    changed("keys");
  };
}
