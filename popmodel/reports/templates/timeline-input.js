// Wheel, pointer and keys on the picture of a timeline.
//
// A plain wheel scrolls the page, unless the picture has the focus: then it zooms, until the whole
// run is seen. With Ctrl (which is also what pinching a touchpad sends) it always zooms.
"use strict";

// `now` tells the view; `changed(by)` is told of changes, by the "pointer" alone, by a "step" of the
// cursor, by other "keys". What is returned does what a key does.
function timelineInput(picture, now, changed) {
  const {canvas} = picture;
  const point = event => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("wheel", event => {
    const {view} = now;
    const {ctrlKey, shiftKey, deltaY} = event;
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const sideways = shiftKey ? event.deltaX || deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(deltaY) || shiftKey) {
      view.pan(sideways * pixels / picture.boxes.plot * view.span);
    } else {
      const inside = document.activeElement === canvas && !(deltaY > 0 && view.all);
      if (!ctrlKey && !inside) return; // the page scrolls
      view.zoom(Math.exp(timelineClamp(deltaY * pixels, -200, 200) * .003), picture.hit(view, ...point(event)).column);
    }
    event.preventDefault();
    changed();
  }, {passive: false});

  // --- The pointer: drags move, or with Shift select ------------------------------------------------
  let drag = null; // where it began, and what was seen then

  canvas.addEventListener("pointerdown", event => {
    if (event.button || !event.isPrimary) return;
    const {view, view: {from, to}} = now;
    const [x, y] = point(event);
    canvas.setPointerCapture(event.pointerId);
    drag = {x, y, from, to, selects: event.shiftKey, column: picture.hit(view, x, y).column, moved: false};
  });

  canvas.addEventListener("pointermove", event => {
    const {view} = now;
    const [x, y] = point(event);
    const hit = picture.hit(view, x, y);
    if (!drag) {
      view.put(hit.panel === undefined ? null : hit);
      changed("pointer");
      return;
    }
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 3;
    if (!drag.moved) return;
    if (drag.selects) view.select(drag.column, hit.column);
    else {
      view.show(drag.from, drag.to);
      view.pan((drag.x - x) / picture.boxes.plot * view.span);
    }
    changed();
  });

  const end = event => {
    const hit = picture.hit(now.view, ...point(event));
    if (drag && !drag.moved && event.type === "pointerup" && hit.panel !== undefined) {
      now.view.put(hit);
      changed("pointer");
    }
    drag = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);

  canvas.addEventListener("pointerleave", () => {
    if (document.activeElement === canvas || drag) return;
    now.view.put(null);
    changed("pointer");
  });

  // --- Keys: as said below the picture -----------------------------------------------------------------
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
  };
  const STEPS = {
    ArrowUp: view => step(view, 0, -1),
    ArrowDown: view => step(view, 0, 1),
    "Shift+ArrowLeft": view => step(view, -1, 0),
    "Shift+ArrowRight": view => step(view, 1, 0),
  };

  function start(view) {
    if (!view.cursor) view.put({panel: 0, row: 0, column: (view.from + view.to) / 2});
    return view.cursor;
  }

  // To the next row (after the last one of a panel comes the first one of the next), or to where the
  // colour of the row changes; at first the cursor only appears.
  function step(view, along, down) {
    const {rows, columns, panels} = view.run;
    const known = view.cursor;
    let {panel, row, column} = start(view);
    const to = timelineClamp(panel * rows + row + (known ? down : 0), 0, rows * panels.length - 1);
    const stretch = at => timelineLanes.stretch(panels[panel].cells, columns, row, at);
    if (along > 0) [, column] = stretch(column);
    if (along < 0) [column] = stretch(Math.max(stretch(column)[0] - 1, 0));
    view.put({panel: Math.floor(to / rows), row: to % rows, column});
    if (column < view.from || column >= view.to) view.pan(column + .5 - (view.from + view.to) / 2);
  }

  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const held = event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : "";
    const key = held + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
    const act = KEYS[key] ?? STEPS[key];
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
