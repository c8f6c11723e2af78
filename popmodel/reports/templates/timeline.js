// The timeline: what is chosen, and everything that follows from a change of it. Its other files are
// data, sums of windows, lanes, picture, view, input and words.
"use strict";

popmodel.section("timeline", async (root, data) => {
  const find = name => root.querySelector(`.timeline-${name}`);
  const canvas = find("picture");
  const picture = new TimelinePicture(canvas);
  const first = data.run ?? 0; // the run that is shown first
  const runs = new Map(); // unpacked when they are first looked at
  const now = {view: null, run: 0, family: null, options: null};

  // --- The address ------------------------------------------------------------------------------------
  // What is chosen as text, by key; null where it is what one sees at first.
  const STATE = {
    "t-run": () => (now.run === first ? null : now.run + 1),
    t: ({view}) => (view.all ? null : view.text([view.from, view.to])),
    "t-window": ({view}) => view.text(view.selected),
    "t-family": ({family, view}) => (family?.id === view.run.window?.fitting ? null : family?.id),
    "t-messages": ({options}) => (options.messages ? null : "no"),
    "t-path": ({options}) => (options.path ? "yes" : null),
    "t-rows-high": () => (picture.tall ? "yes" : null),
  };

  function write() {
    for (const [key, text] of Object.entries(STATE)) {
      const value = text(now) ? String(text(now)) : null;
      if (popmodel.state.get(key) !== value) popmodel.state.set(key, value);
    }
  }

  const chosen = () => timelineClamp(Math.trunc(popmodel.state.get("t-run")) || first + 1, 1, data.runs.length) - 1;

  async function read() {
    const get = key => popmodel.state.get(key) ?? "";
    // While one is unpacked, the one before is shown, and another may be chosen.
    for (let one; !runs.has(one = chosen());) runs.set(one, await timelineData.load(data.runs[one]));
    now.run = chosen();
    const run = runs.get(now.run);
    const view = now.view = new TimelineView(run);
    view.show(...view.read(get("t")) ?? [0, run.total]);
    view.select(...view.read(get("t-window")) ?? [0, 0]);
    const families = run.window?.families ?? [];
    const family = id => families.find(one => one.id === id);
    now.family = family(get("t-family")) ?? family(run.window?.fitting);
    now.options = {messages: get("t-messages") !== "no", path: get("t-path") === "yes"};
    picture.tall = get("t-rows-high") === "yes";
    controls();
    draw();
    words();
  }

  // --- What follows from a change -----------------------------------------------------------------------
  let frame = 0, timer = 0;

  // The picture at the next frame (none comes while the page is hidden); words and address when it has
  // come to rest: a browser allows few changes of an address in a second.
  function changed(by = "") {
    frame ||= requestAnimationFrame(draw);
    if (by === "pointer" || by === "step") atCursor(by === "step");
    if (by === "pointer") return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (now.run !== chosen()) return; // of a run that is being left, nothing goes into the address
      words();
      write();
      if (by === "keys") find("spoken").textContent = timelineWords.seen(now.view);
    }, 200);
  }

  function draw() {
    frame = 0;
    picture.draw(now.view, now.options);
  }

  // Only what keys do is spoken: a pointer would say too much.
  function atCursor(spoken) {
    const {view} = now;
    const text = view.cursor ? timelineWords.cursor(view) : "";
    find("cursor").textContent = text;
    if (spoken) find("spoken").textContent = text;
  }

  function words() {
    const {view, options} = now;
    const {run} = view;
    find("seen").textContent = timelineWords.seen(view);
    const notes = run.panels.flatMap(panel => [panel.messages?.note, panel.path?.note]);
    const hide = (name, what, between) => {
      const many = Math.max(...run.panels.map(panel => timelineData.inView(view, panel[name]).length));
      if (!options[name] || many <= picture.mostLines) return;
      notes.unshift(`${popmodel.count(many)} ${what} are here: lines ${between}are drawn once there are ${picture.mostLines} or fewer`);
    };
    hide("path", "stretches of the critical path", "between them ");
    hide("messages", "messages", "");
    if (run.threads_per_row) notes.unshift(`rows: ${run.threads_per_row}`);
    if (!run.ideal) notes.unshift(`no ideal replay: ${run.why_no_ideal}`);
    find("notes").textContent = [...new Set(notes)].filter(Boolean)
      .map(note => `${note[0].toUpperCase()}${note.slice(1)}.`).join(" ");
    efficiencies();
  }

  function efficiencies() {
    const {family, view: {run, selected, window: range}} = now;
    const {window} = run;
    find("window").hidden = !window;
    find("no-window").textContent = window ? "" : run.why_no_window ?? "";
    if (!window) return commands(run, range);
    const [a, b] = timelineWindow.snap(window, ...range);
    commands(run, [window.columns[a], window.columns[b]]);
    find("metrics").tBodies[0].replaceChildren(...timelineWords.metrics(window, family, a, b));
    const clock = timelineData.clock(run);
    find("ends").textContent = `What is ${selected ? "selected" : "seen"}, to the nearest of `
      + `${popmodel.count(window.columns.length - 1)} steps: ${clock(window.columns[a])} to ${clock(window.columns[b])}`;
    find("estimate").textContent = family.metrics.some(metric => metric.estimate) ? `≈ ${window.estimate}.` : "";
    const absent = family.absent.map(one => `${one.name} (${one.reason})`).join(", ");
    find("absent").textContent = absent && `No value here: ${absent}.`;
  }

  // All metrics of a window, and its timeline in finer steps.
  function commands(run, range) {
    const [begin, end] = range.map(column => `${run.seconds(column).toFixed(9)}s`);
    const lines = [run.window?.command, run.closer].filter(Boolean);
    find("command").textContent = lines.map(line => `${line} ${begin}:${end}`).join("\n");
    find("exact").hidden = !lines.length;
  }

  // --- Controls -----------------------------------------------------------------------------------------------
  function controls() {
    const {view: {run}, options} = now;
    const choice = (name, values, chosen) => {
      find(name).replaceChildren(...values.map(([value, text]) => new Option(text, value, false, value === chosen)));
      find(name).parentElement.hidden = values.length < 2;
    };
    choice("run", data.runs.map((one, i) => [String(i), one.name]), String(now.run));
    choice("family", (run.window?.families ?? []).map(one => [one.id, one.title]), now.family?.id);
    find("tall").checked = picture.tall;
    for (const name of ["messages", "path"]) {
      find(name).checked = options[name];
      find(name).parentElement.hidden = !run.panels.some(panel => panel[name]);
    }
    const what = run.panels.map(panel => panel.title).join(" above ");
    canvas.setAttribute("aria-label", `Timeline of ${run.name}, ${run.rows} rows: ${what}`);
    find("legend").replaceChildren(...timelineWords.legend(run));
  }

  const on = (name, type, act) => find(name).addEventListener(type, ({target}) => act(target));
  on("run", "change", ({value}) => {
    for (const key of ["t", "t-window"]) popmodel.state.set(key, null);
    popmodel.state.set("t-run", Number(value) + 1);
    read();
  });
  on("family", "change", ({value}) => {
    now.family = now.view.run.window.families.find(one => one.id === value);
    changed();
  });
  for (const name of ["messages", "path"]) {
    on(name, "change", ({checked}) => {
      now.options[name] = checked;
      changed();
    });
  }
  on("tall", "change", ({checked}) => {
    picture.tall = checked;
    changed();
  });
  const press = timelineInput(picture, now, changed);
  for (const button of root.querySelectorAll("[data-key]")) {
    button.addEventListener("click", () => press(button.dataset.key));
  }

  // --- The page around it ---------------------------------------------------------------------------------------
  find("drawn").hidden = false;
  await read();
  for (const key of Object.keys(STATE)) popmodel.state.watch(key, read);
  new ResizeObserver(() => changed("pointer")).observe(canvas);
  const repaint = scheme => {
    canvas.style.colorScheme = scheme;
    picture.forget();
  };
  popmodel.onTheme(() => {
    repaint("");
    changed("pointer");
  });
  // On paper: the whole run, in the colours of a light page.
  addEventListener("beforeprint", () => {
    repaint("light");
    picture.draw(new TimelineView(now.view.run), now.options, 680, 2);
  });
  addEventListener("afterprint", () => {
    repaint("");
    draw();
  });
});
