// Another network, another CPU: the runtime is the greatest of a few planes over latency, time per
// byte and the time of computing, and is evaluated here as exactly as in Python.
"use strict";
popmodel.section("whatif", (root, data) => {
  if (!data.runs.length) return;
  const STEPS = 300; // of a slider
  const NAMES = ["latency", "bandwidth", "speed"];
  const CHARTS = ["latency", "bandwidth"];
  const by = id => document.getElementById(`whatif-${id}`);
  const cell = (name, value) => root.querySelector(`[data-${name}="${value}"]`);
  let run, here, now; // the run that is shown, its network as analysed, and what is set

  // --- The model: a plane is [constant, latencies, bytes, computing] -----------------------------
  const gapOf = setting => 1 / setting.bandwidth; // 0 where that is infinite

  function height(plane, latency, gap, slower) { // in the order of Python's sum
    return plane[0] + (slower - 1) * plane[3] + plane[1] * latency + plane[2] * gap;
  }

  function longest(setting) {
    const at = plane => height(plane, setting.latency, gapOf(setting), 1 / setting.speed);
    return run.planes.reduce((a, b) => (at(b) > at(a) ? b : a));
  }

  const runtime = setting => height(longest(setting), setting.latency, gapOf(setting), 1 / setting.speed);

  // Without latency, bytes and overheads only computing is left, which scales as a whole.
  function timesOf(setting) {
    const scaled = Object.entries(run.times).map(([name, time]) => [name, time / setting.speed]);
    return {...Object.fromEntries(scaled), runtime: runtime(setting)};
  }

  function partsOf(setting) {
    const plane = longest(setting);
    const other = plane[0] - plane[3];
    return {
      computing: plane[3] / setting.speed,
      // Messages of some sizes may have less latency than that of all: then they are told together.
      latency: plane[1] * setting.latency + Math.min(other, 0),
      bandwidth: plane[2] * gapOf(setting),
      other: Math.max(other, 0),
    };
  }

  // Over latency, or time per byte, the planes are lines: [value at 0, slope].
  function linesOver(name) {
    const [latency, gap, slope] = name === "latency" ? [0, gapOf(now), 1] : [now.latency, 0, 2];
    return run.planes.map(plane => [height(plane, latency, gap, 1 / now.speed), plane[slope]]);
  }

  // Where another line becomes the greatest, from low to high, with both ends.
  function breakpoints(lines, low, high) {
    const found = [low];
    const above = (a, b) => b[0] + b[1] * low - a[0] - a[1] * low || b[1] - a[1];
    let best = lines.reduce((a, b) => (above(a, b) > 0 ? b : a));
    for (;;) {
      let next = null;
      let where = high;
      for (const line of lines) {
        const x = line[1] > best[1] ? (best[0] - line[0]) / (line[1] - best[1]) : Infinity;
        if (x < where || (next && x === where && line[1] > next[1])) [next, where] = [line, x];
      }
      if (!next) return [...found, high];
      if (where > found.at(-1)) found.push(where);
      best = next;
    }
  }

  // Where lines reach a value, in a range; null where they do not, or begin above it.
  function reaches(lines, value, low, high) {
    const at = Math.min(...lines.map(([constant, slope]) => (slope > 0 ? (value - constant) / slope : Infinity)));
    return at >= low && at <= high ? at : null;
  }

  // --- Values and how they are written ---------------------------------------------------------
  const short = value => Number(value.toPrecision(3));
  const write = {
    latency: seconds => popmodel.time(short(seconds), 3).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " "),
    bandwidth: rate => (rate === Infinity ? "inf" : popmodel.bandwidth(short(rate))),
    speed: factor => String(short(factor)),
  };
  const say = {
    latency: value => `latency ${write.latency(value)}`,
    bandwidth: value => (value === Infinity ? "infinite bandwidth" : `bandwidth ${write.bandwidth(value)}`),
    speed: value => `computing ${value === 1 ? "as fast as analysed" : `at ${write.speed(value)} times its speed`}`,
  };

  // Positions of a slider: logarithmic, with 0 or no limit at an end where a range has them.
  function scaleOf(name) {
    let [low, high] = run.range[name];
    const first = low === 0 ? 1 : 0;
    const last = high === Infinity ? STEPS - 1 : STEPS;
    if (first) low = Math.min(high / 1e4, here[name] / 10 || Infinity);
    if (last < STEPS) high = Math.max(100 * low, here[name] === Infinity ? 0 : 10 * here[name]);
    const ratio = Math.log(high / low) / (last - first);
    const inside = value => Math.min(Math.max(value, low), high);
    return {
      low, high, inside,
      position: value => value === 0 ? 0 : value === Infinity ? STEPS
        : Math.round(first + Math.log(inside(value) / low) / ratio),
      value: position => position < first ? 0 : position > last ? Infinity
        : inside(short(low * Math.exp((position - first) * ratio))),
    };
  }

  // What was typed; an error tells what is wrong with it.
  function parsed(name, typed) {
    const [, digits, unit] = /^([\d.]+(?:[eE][+-]?\d+)?|inf)\s*(.*)$/.exec(typed.trim()) ?? [];
    const number = digits === "inf" ? Infinity : Number(digits);
    const units = data.units[name];
    if (digits === undefined || Number.isNaN(number)) throw new Error(`"${typed}" is no number`);
    const bare = unit === "" && (number === 0 || number === Infinity);
    if (!bare && !Object.hasOwn(units, unit)) {
      const known = Object.keys(units).filter(Boolean);
      throw new Error(`"${typed}" needs a unit: ${known.join(", ")}`);
    }
    const value = bare ? number : Number((number * units[unit]).toPrecision(12));
    const [low, high] = run.range[name];
    const near = Math.min(Math.max(value, low), high);
    if (Math.abs(near / value - 1) > 1e-9) { // an end that is typed may differ by rounding
      throw new Error(`must be from ${write[name](low)} to ${write[name](high)}`);
    }
    return near;
  }

  const signed = (fraction, unit = " %") =>
    `${fraction < 0 ? "-" : "+"}${Math.abs(100 * fraction).toFixed(1)}${unit}`.replace("-0.0", "+0.0");

  // --- What is shown -----------------------------------------------------------------------------
  function showNumbers() {
    const [before, times, parts] = [timesOf(here), timesOf(now), partsOf(now)];
    const change = NAMES.every(name => now[name] === here[name]) ? "as analysed"
      : `${signed(times.runtime / before.runtime - 1)} against the network analysed`;
    by("runtime").value = String(times.runtime);
    by("runtime").textContent = popmodel.time(times.runtime);
    by("change").textContent = `(${change})`;
    by("set").textContent = `At ${NAMES.map(name => say[name](now[name])).join(", ")}.`;
    data.efficiencies.forEach(([, one, other], index) => {
      const [was, is] = [before, times].map(all => all[one] / all[other]);
      const known = all => (all[other] ? popmodel.percent(all[one] / all[other]) : "-");
      cell("before", index).textContent = known(before);
      cell("now", index).textContent = known(times);
      cell("points", index).textContent = times[other] ? signed(is - was, "") : "-";
    });
    for (const [part, time] of Object.entries(parts)) {
      const share = popmodel.percent(time / times.runtime);
      cell("bar", part).style.width = share.replace(" ", "");
      cell("time", part).textContent = popmodel.time(time);
      cell("share", part).textContent = share;
    }
    clearTimeout(speaking); // a slider that moves is not read out
    speaking = setTimeout(() => {
      by("status").textContent = `Runtime ${popmodel.time(times.runtime)}, ${change}`;
    }, 500);
  }
  let speaking = 0;

  function showControls() {
    for (const name of NAMES) {
      by(name).value = scaleOf(name).position(now[name]);
      by(name).setAttribute("aria-valuetext", write[name](now[name]));
      const field = by(`${name}-text`);
      if (!field.hasAttribute("aria-invalid")) field.value = write[name](now[name]);
    }
  }

  // --- Charts ------------------------------------------------------------------------------------
  function curveOf(name) {
    const scale = scaleOf(name);
    const lines = linesOver(name);
    const turn = x => (name === "latency" ? x : 1 / x); // planes know times per byte
    const [low, high] = run.range[name].map(turn).sort((a, b) => a - b);
    const bends = breakpoints(lines, low, high).map(turn);
    const grid = Array.from({length: 201}, (_, i) => scale.inside(scale.low * (scale.high / scale.low) ** (i / 200)));
    const xs = [...new Set([...grid, ...bends.map(scale.inside)])].sort((a, b) => a - b);
    const value = x => runtime({...now, [name]: x});
    const marks = run.slowdowns.flatMap(slowdown => {
      const at = reaches(lines, (1 + slowdown) * runtime(here), low, high);
      return at === null ? [] : [{at: turn(at), percent: short(100 * slowdown)}];
    });
    return {scale, value, xs, ys: xs.map(value), bends, marks};
  }

  const charts = new Map();
  function draw(name) {
    const curve = curveOf(name);
    const box = by(`${name}-chart`);
    const top = 1.05 * Math.max(Math.min(Math.max(...curve.ys), 4 * runtime(here)), 1.2 * runtime(now));
    const line = {stroke: popmodel.colour("--line"), width: 1};
    const axis = {stroke: popmodel.colour("--faint"), grid: line, ticks: line};
    const decade = x => Number.isInteger(Math.round(1e6 * Math.log10(x)) / 1e6);
    charts.get(name)?.destroy();
    charts.set(name, new uPlot({
      width: Math.max(box.clientWidth, 200), height: 240, padding: [12, 32, 0, 0],
      legend: {show: false}, cursor: {show: false},
      scales: {x: {time: false, distr: 3, range: [curve.scale.low, curve.scale.high]}, y: {range: [0, top]}},
      axes: [
        {...axis, values: (_, all) => all.map(x => (x && decade(x) ? write[name](x) : ""))},
        {...axis, size: 70, values: (_, all) => all.map(write.latency)},
      ],
      series: [{}, {stroke: popmodel.colour("--accent"), width: 2, points: {show: false}}],
      hooks: {draw: [plot => mark(plot, name, curve)]},
    }, [curve.xs, curve.ys], box));
    describe(name, curve);
  }

  function mark({ctx, bbox, valToPos}, name, {scale, value, bends, marks}) {
    const unit = devicePixelRatio;
    const left = x => valToPos(scale.inside(x), "x", true);
    const place = x => [left(x), valToPos(value(x), "y", true)];
    const disc = ([x, y]) => { ctx.beginPath(); ctx.arc(x, y, 4 * unit, 0, 7); };
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = popmodel.colour("--ink");
    ctx.lineWidth = unit;
    ctx.font = `${11 * unit}px sans-serif`;
    const floor = bbox.top + bbox.height;
    for (const x of bends.slice(1, -1)) ctx.fillRect(left(x), floor - 6 * unit, unit, 6 * unit);
    const labels = []; // one for marks that are close to each other
    for (const one of marks) {
      const [x, y] = place(one.at);
      if (y < bbox.top) continue;
      disc([x, y]);
      ctx.stroke();
      const near = labels.find(label => Math.abs(label.x - x) < 28 * unit);
      if (near) near.text += `, ${one.percent}`;
      else labels.push({x, y, text: String(one.percent)});
    }
    for (const {x, y, text} of labels) ctx.fillText(`${text} %`, x - 8 * unit, y - 10 * unit);
    const [x, y] = place(here[name]);
    ctx.beginPath();
    for (const [dx, dy] of [[0, -7], [7, 0], [0, 7], [-7, 0]]) ctx.lineTo(x + dx * unit, y + dy * unit);
    ctx.closePath();
    ctx.stroke();
    disc(place(now[name]));
    ctx.fill();
    ctx.restore();
  }

  // The same for those who do not see the chart.
  function describe(name, {value, bends, marks}) {
    const at = x => `${popmodel.time(value(x))} at ${say[name](x)}`;
    const others = NAMES.filter(one => one !== name).map(one => say[one](now[one]));
    by(`${name}-at`).textContent = `, ${others.join(", ")}`;
    by(`${name}-chart`).setAttribute("aria-label", [
      `Runtime over ${name}: ${at(bends[0])}, ${at(bends.at(-1))}`, `now ${at(now[name])}`,
      ...marks.map(one => `${one.percent} % slower at ${say[name](one.at)}`),
    ].join("; "));
    by(`${name}-rows`).replaceChildren(...bends.map(x => {
      const row = document.createElement("tr");
      const change = signed(value(x) / runtime(now) - 1);
      for (const text of [write[name](x), popmodel.time(value(x)), change]) row.insertCell().textContent = text;
      for (const one of row.cells) one.className = "number";
      return row;
    }));
  }

  // --- What people do ------------------------------------------------------------------------------
  let frame = 0;
  function show() {
    showControls();
    showNumbers();
    if (!charts.size) return CHARTS.forEach(draw);
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => CHARTS.forEach(draw));
  }

  function move(changes) {
    complain("");
    now = {...now, ...changes};
    for (const name of NAMES) {
      popmodel.state.set(`whatif-${name}`, now[name] === here[name] ? null : String(now[name]));
    }
    show();
  }

  function complain(text, field) {
    for (const name of NAMES) by(`${name}-text`).removeAttribute("aria-invalid");
    field?.setAttribute("aria-invalid", "true");
    by("problem").textContent = text;
    by("problem").hidden = !text;
  }

  function fromState(name) {
    const text = popmodel.state.get(`whatif-${name}`);
    const value = Number(text ?? NaN);
    const [low, high] = run.range[name];
    return value >= low && value <= high ? value : here[name]; // an address can be changed by hand
  }

  function choose(text) {
    const index = text !== null && data.runs[Number(text)] ? Number(text) : data.run;
    run = data.runs[index];
    here = run.here;
    now = Object.fromEntries(NAMES.map(name => [name, fromState(name)]));
    for (const part of root.querySelectorAll("[data-run]")) part.hidden = Number(part.dataset.run) !== index;
    by("run").value = String(index);
    by("error").textContent = `Elsewhere a replay may take up to ${(100 * run.error).toPrecision(2)} % longer.`;
    by("error").hidden = run.error < 1e-9;
    complain("");
    show();
  }

  for (const {here, range} of data.runs) { // JSON knows no infinity
    here.bandwidth ??= Infinity;
    range.bandwidth = range.bandwidth.map(value => value ?? Infinity);
  }
  for (const name of NAMES) {
    by(name).addEventListener("input", () => move({[name]: scaleOf(name).value(Number(by(name).value))}));
    by(`${name}-text`).addEventListener("change", ({target}) => {
      try {
        move({[name]: parsed(name, target.value)});
      } catch (error) {
        complain(`${by(name).labels[0].textContent}: ${error.message}`, target);
      }
    });
    popmodel.state.watch(`whatif-${name}`, () => { now[name] = fromState(name); show(); });
  }
  by("reset").addEventListener("click", () => move(here));
  for (const button of root.querySelectorAll(".whatif-preset")) {
    const [latency, bandwidth] = button.value.split(" ").map(Number);
    button.addEventListener("click", () => move({latency, bandwidth}));
  }
  by("run").addEventListener("change", ({target}) => {
    popmodel.state.set("whatif-run", Number(target.value) === data.run ? null : target.value);
    choose(target.value);
  });
  popmodel.state.watch("whatif-run", choose);
  popmodel.onTheme(() => CHARTS.forEach(draw));
  matchMedia("print").addEventListener("change", () => CHARTS.forEach(draw)); // in the colours of paper
  by("live").hidden = false;
  choose(popmodel.state.get("whatif-run"));
  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (root.clientWidth !== width) CHARTS.forEach(draw);
    width = root.clientWidth;
  }).observe(root);
});
