// Another network, another CPU: the runtime is the greatest of a few planes over latency, time per
// byte and the time of computing, and is evaluated here as exactly as in Python.
"use strict";
popmodel.section("whatif", (root, data) => {
  const STEPS = 300; // of a slider
  const NAMES = ["latency", "bandwidth", "speed"];
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

  // --- Values and how they are written ---------------------------------------------------------
  const short = value => Number(value.toPrecision(3));
  const write = {
    latency: seconds => popmodel.time(short(seconds), 3).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " "),
    bandwidth: rate => (rate === Infinity ? "inf" : popmodel.bandwidth(short(rate))),
    speed: factor => `${short(factor)} x`,
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
    data.efficiencies.forEach(([, one, other], index) => {
      const [was, is] = [before, times].map(all => all[one] / all[other]);
      const known = all => (all[other] ? popmodel.percent(all[one] / all[other]) : "-");
      cell("before", index).textContent = known(before);
      cell("now", index).textContent = known(times);
      cell("points", index).textContent = times[other] ? signed(is - was, "") : "-";
    });
    for (const [part, time] of Object.entries(parts)) {
      const share = popmodel.percent(time / times.runtime);
      cell("time", part).textContent = popmodel.time(time);
      cell("share", part).textContent = share;
    }
    clearTimeout(speaking); // a slider that moves is not read out
    speaking = setTimeout(() => {
      by("status").textContent = `Runtime ${popmodel.time(times.runtime)}, ${change}`;
    }, 500);
  }
  let speaking = 0;

  // The runtime over latency or bandwidth, the others as they are set.
  function draw(name) {
    const [left, right, top, bottom] = [56, 420, 12, 196]; // in the box of the picture
    const scale = scaleOf(name);
    const value = at => runtime({...now, [name]: at});
    const grid = Array.from({length: 201}, (_, i) => scale.inside(scale.low * (scale.high / scale.low) ** (i / 200)));
    const most = 1.05 * Math.max(Math.min(Math.max(...grid.map(value)), 4 * runtime(here)), 1.2 * runtime(now));
    const x = at => left + Math.log(scale.inside(at) / scale.low) / Math.log(scale.high / scale.low) * (right - left);
    const y = at => bottom - Math.min(value(at) / most, 1) * (bottom - top);
    const make = (tag, attributes, text = "") => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [key, given] of Object.entries(attributes)) made.setAttribute(key, given);
      made.textContent = text;
      return made;
    };
    const word = (at, height, text, anchor) => make("text", {x: at, y: height, "text-anchor": anchor}, text);
    by(`${name}-chart`).replaceChildren(
      make("path", {class: "axis", d: `M${left} ${top}V${bottom}H${right}`}),
      word(left, bottom + 16, write[name](scale.low), "start"), word(right, bottom + 16, write[name](scale.high), "end"),
      word(left - 6, bottom, "0 s", "end"), word(left - 6, top + 10, write.latency(most), "end"),
      make("path", {d: `M${grid.map(at => `${x(at).toFixed(1)} ${y(at).toFixed(1)}`).join("L")}`}),
      make("path", {class: "analysed", d: `M${x(here[name])} ${y(here[name]) - 7}l7 7l-7 7l-7 -7z`}),
      make("circle", {class: "now", cx: x(now[name]), cy: y(now[name]), r: 4}),
    );
    const told = at => `${popmodel.time(value(at))} at ${write[name](at)}`;
    by(`${name}-chart`).setAttribute("aria-label",
      `Runtime over ${name}: ${run.range[name].map(told).join(", ")}; now ${told(now[name])}`);
  }

  // --- What people do ------------------------------------------------------------------------------
  function show() {
    for (const name of NAMES) {
      by(name).value = scaleOf(name).position(now[name]);
      by(name).setAttribute("aria-valuetext", by(`${name}-set`).textContent = write[name](now[name]));
    }
    showNumbers();
    ["latency", "bandwidth"].forEach(draw);
  }

  function move(changes) {
    now = {...now, ...changes};
    for (const name of NAMES) {
      popmodel.state.set(`whatif-${name}`, now[name] === here[name] ? null : String(now[name]));
    }
    show();
  }

  function fromState(name) {
    const value = Number(popmodel.state.get(`whatif-${name}`) ?? NaN);
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
    show();
  }

  for (const {here, range} of data.runs) { // JSON knows no infinity
    here.bandwidth ??= Infinity;
    range.bandwidth = range.bandwidth.map(value => value ?? Infinity);
  }
  for (const name of NAMES) {
    by(name).addEventListener("input", () => move({[name]: scaleOf(name).value(Number(by(name).value))}));
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
  by("live").hidden = false;
  choose(popmodel.state.get("whatif-run"));
});
