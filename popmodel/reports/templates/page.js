// What the scripts of all sections share: data, state, units, colours. Nothing is requested and
// nothing is stored: what is worth sending to somebody is in the fragment of the address.
"use strict";
const popmodel = (() => {
  // --- Data -------------------------------------------------------------------------------------
  const types = {uint8: Uint8Array, int32: Int32Array, float64: Float64Array};

  async function inflated(text) {
    const deflated = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // JSON that stands in the page: as it is, or deflated where it is large.
  async function json(id) {
    const text = document.getElementById(id)?.textContent ?? "{}";
    const deflated = /^\{"deflate_base64":"([^"]*)"\}$/.exec(text);
    return deflated ? new TextDecoder().decode(await inflated(deflated[1])) : text;
  }

  // An array as Python packed it: all first bytes of the numbers, then all second ones, and so on.
  async function unpack(name) {
    const element = document.getElementById(`packed-${name}`);
    const bytes = await inflated(element.textContent);
    const width = Number(element.dataset.planes);
    if (width === 1) return new types[element.dataset.type](bytes.buffer);
    const count = bytes.length / width;
    const ordered = new Uint8Array(bytes.length);
    for (let plane = 0; plane < width; plane++) {
      const from = plane * count;
      for (let i = 0, at = plane; i < count; i++, at += width) ordered[at] = bytes[from + i];
    }
    return new types[element.dataset.type](ordered.buffer);
  }

  // --- State: "#section&key=value&key=value" ----------------------------------------------------
  const watchers = new Map();
  let state = parse();

  function parse() {
    const parts = location.hash.slice(1).split("&").filter(Boolean);
    const found = {section: "", values: new Map()};
    for (const part of parts) {
      const at = part.indexOf("=");
      if (at < 0) found.section = decode(part);
      else found.values.set(decode(part.slice(0, at)), decode(part.slice(at + 1)));
    }
    return found;
  }

  function decode(part) {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // an address that somebody changed by hand
    }
  }

  function write() {
    const pairs = [...state.values].map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    const hash = [state.section, ...pairs].filter(Boolean).join("&");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function set(key, value) {
    if (value === null || value === "") state.values.delete(key);
    else state.values.set(key, String(value));
    write();
  }

  function watch(key, callback) {
    watchers.set(key, [...(watchers.get(key) ?? []), callback]);
  }

  function show(section) {
    const element = section && document.getElementById(section);
    if (!element) return;
    const fold = element.querySelector(".fold");
    if (fold) fold.open = true;
    element.scrollIntoView();
  }

  addEventListener("hashchange", () => {
    const before = state;
    state = parse();
    // A link to a section has no state of its own: what was chosen before stays.
    if (!state.values.size) state.values = before.values;
    write();
    for (const [key, callbacks] of watchers) {
      if (before.values.get(key) === state.values.get(key)) continue;
      for (const callback of callbacks) callback(state.values.get(key) ?? null);
    }
    show(state.section);
  });

  // --- Quantities, written as the terminal does ---------------------------------------------------
  function significant(number, digits) {
    if (number >= 10 ** (digits + 3)) {
      return number.toExponential(digits - 1).replace(/e\+(\d)$/, "e+0$1");
    }
    const exponent = Math.floor(Math.log10(number));
    const fixed = number.toFixed(Math.max(digits - 1 - exponent, 0));
    const shown = fixed.replace(".", "").replace(/^0+/, "").length;
    return shown > digits && fixed.includes(".")
      ? number.toFixed(Math.max(digits - 2 - exponent, 0)) : fixed;
  }

  function quantity(value, scale, digits, trim) {
    if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf");
    const size = Math.abs(value);
    if (size === 0) return `0 ${scale[0][0] === "ns" ? "s" : scale[0][0]}`;
    let index = 0;
    let shown = significant(size / scale[0][1], digits);
    while (index < scale.length - 1
        && Number(shown) >= Math.round(scale[index + 1][1] / scale[index][1])) {
      index += 1;
      shown = significant(size / scale[index][1], digits);
    }
    if (trim && shown.includes(".")) shown = shown.replace(/\.?0+$/, "");
    return `${value < 0 ? "-" : ""}${shown} ${scale[index][0]}`;
  }

  const TIMES = [["ns", 1e-9], ["us", 1e-6], ["ms", 1e-3], ["s", 1]];
  const RATES = [["B/s", 1], ["kB/s", 1e3], ["MB/s", 1e6], ["GB/s", 1e9], ["TB/s", 1e12]];

  // --- Colours ------------------------------------------------------------------------------------
  const onTheme = [];

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const callback of onTheme) callback();
  });

  function save(name, content, type = "application/json") {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], {type}));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // --- The page itself ----------------------------------------------------------------------------
  document.getElementById("save").addEventListener("click", async () => {
    save("report.json", await json("document"));
  });
  document.querySelector(".tools").hidden = false;

  // The scripts of the sections stand in the page deflated; its policy knows their hash, and lets
  // no other run.
  async function loadScripts() {
    const element = document.getElementById("sections");
    if (!element) return;
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(await inflated(element.textContent));
    document.head.append(script);
  }

  // So does what is folded up. It is markup that Python wrote, in which names are escaped.
  async function unfold() {
    const element = document.getElementById("folded");
    if (!element) return;
    const contents = JSON.parse(new TextDecoder().decode(await inflated(element.textContent)));
    for (const details of document.querySelectorAll("details[data-folded]")) {
      const box = document.createElement("template");
      box.innerHTML = contents[Number(details.dataset.folded)];
      details.append(box.content);
    }
  }

  const sections = [];
  function section(id, draw) {
    const root = document.getElementById(id);
    if (root) sections.push({id, root, draw});
  }

  // Sections are drawn one after the other, in the order of the page; one that is folded up when it
  // is opened, or when everything is printed.
  const drawing = new Map();
  async function drawn({id, root, draw}) {
    if (!drawing.has(id)) drawing.set(id, json(`data-${id}`).then(text => draw(root, JSON.parse(text))));
    await drawing.get(id);
  }

  async function start() {
    await unfold();
    await loadScripts();
    if (state.section) show(state.section);
    for (const one of sections) {
      const fold = one.root.querySelector(".fold");
      if (!fold || fold.open) await drawn(one);
      fold?.addEventListener("toggle", () => fold.open && drawn(one));
    }
    const opened = [];
    addEventListener("beforeprint", () => {
      opened.push(...document.querySelectorAll(".fold:not([open])"));
      for (const fold of opened) fold.open = true;
    });
    addEventListener("afterprint", () => {
      for (const fold of opened.splice(0)) fold.open = false;
    });
    document.documentElement.dataset.ready = "";
    performance.mark("drawn");
    show(state.section);
  }
  addEventListener("DOMContentLoaded", start);

  return {
    section, unpack,
    state: {get: key => state.values.get(key) ?? null, set, watch},
    onTheme: callback => onTheme.push(callback),
    time: (seconds, digits = 4) => quantity(seconds, TIMES, digits, false),
    bandwidth: rate => quantity(rate, RATES, 4, true),
    percent: (fraction, digits = 1) => `${(100 * fraction).toFixed(digits)} %`,
    count: number => Math.round(number).toLocaleString("en-GB"),
  };
})();
