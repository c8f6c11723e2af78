// The efficiencies of a window, from sums of time between edges: the arithmetic of
// popmodel.timeline.window_sums. Nothing here knows the page.
"use strict";

const timelineWindow = (() => {
  // A window's data with sums added up from the left: between two edges lies a difference of two.
  async function load(told, run) {
    const last = told.edges.length - 1;
    const time = told.edges.map((edge, k) => (k === last ? run.end - run.begin : edge * run.step));
    const rows = {thread: told.threads, process: told.processes, run: 1};
    const given = {};
    for (const [name, {by, packed}] of Object.entries(told.sums)) {
      given[name] = packed ? Float64Array.from(await popmodel.unpack(packed)) : new Float64Array(rows[by] * last);
    }
    // What is told as the rest: the time between edges without others and without what is given.
    const complete = name => told.sums[name].less?.reduce((left, other) => {
      const values = complete(other);
      return left.map((value, i) => value - values[i]);
    }, given[name].map((value, i) => time[i % last + 1] - time[i % last] - value)) ?? given[name];
    const added = {};
    for (const name of Object.keys(given)) added[name] = accumulated(complete(name), last);
    const [first, node, clock] = await Promise.all(
      [told.first, told.node, told.clock].map(name => name && popmodel.unpack(name)));
    return {...told, time, first, node, clock, added, columns: time.map(ns => ns / run.step)};
  }

  function accumulated(increments, width) {
    const sums = new Float64Array(increments.length / width * (width + 1));
    increments.forEach((value, i) => {
      const at = i + Math.floor(i / width);
      sums[at + 1] = sums[at] + value;
    });
    return sums;
  }

  // Numbers of the edges that are nearest to two columns; never the same twice.
  function snap({columns}, from, to) {
    const last = columns.length - 1;
    const nearest = column => columns.reduce((best, one, k) =>
      (Math.abs(one - column) < Math.abs(columns[best] - column) ? k : best), 0);
    const [a, b] = [nearest(from), nearest(to)];
    if (a < b) return [a, b];
    const left = Math.max(Math.min((from + to) / 2 < columns[a] ? a - 1 : a, last - 1), 0);
    return [left, left + 1];
  }

  const sum = values => values.reduce((total, value) => total + value, 0);
  const OPERATIONS = {
    "+": (x, y) => x + y, "-": (x, y) => x - y, "*": (x, y) => x * y,
    "/": (x, y) => (Number.isFinite(x / y) ? x / y : null), larger: (x, y) => Math.max(x, y),
  };
  const AGGREGATES = { // of a window and one number for each thread or process
    sum: (_, x) => sum(x),
    max: (_, x) => Math.max(...x),
    min: (_, x) => Math.min(...x),
    mean: (_, x) => sum(x) / x.length,
    masters: (window, x) => perProcess(window, first => x[first]),
    over_threads: (window, x) => perProcess(window, (first, end) => sum(x.subarray(first, end)) / (end - first)),
    weighted: (window, x) => sum(perProcess(window, (first, end, p) => (end - first) * x[p])) / window.threads,
    nodes_min: (window, x) => Math.min(...[...new Set(window.node)].map(node => {
      const weights = perProcess(window, (first, end, p) => (window.node[p] === node ? end - first : 0));
      return sum(x.map((value, p) => weights[p] * value)) / sum(weights);
    })),
  };

  const perProcess = ({processes, first}, value) =>
    Float64Array.from({length: processes}, (_, p) => value(first[p], first[p + 1], p));

  // An aggregate of the window between edges a and b: a number, or one per thread or process.
  function aggregate(window, a, b, tree) {
    const [operation, ...operands] = tree;
    const width = window.columns.length;
    if (operation === "clock") return window.clock && window.clock[b] - window.clock[a];
    if (operation === "count") return window[operands[0]];
    if (operation === "sums") {
      const added = window.added[operands[0]];
      return Float64Array.from({length: added.length / width}, (_, row) => added[row * width + b] - added[row * width + a]);
    }
    const [x, y] = operands.map(each => (Array.isArray(each) ? aggregate(window, a, b, each) : each));
    if (AGGREGATES[operation]) return AGGREGATES[operation](window, x);
    const act = OPERATIONS[operation];
    return ArrayBuffer.isView(x) ? x.map((value, i) => act(value, y[i])) : act(x, y);
  }

  // All metrics of a family in the window between two edges, with the aggregates: numbers by name,
  // null where undefined.
  function metrics(window, family, a, b) {
    const known = {};
    for (const [name, tree] of Object.entries(window.aggregates)) known[name] = aggregate(window, a, b, tree);
    const scalar = tree => {
      if (!Array.isArray(tree)) return typeof tree === "string" ? known[tree] ?? null : tree;
      const [x, y] = tree.slice(1).map(scalar);
      return x === null || y === null ? null : OPERATIONS[tree[0]](x, y);
    };
    const formulas = new Map(family.metrics.map(({id, formula}) => [id, formula]));
    for (const id of family.order) known[id] = scalar(formulas.get(id));
    return known;
  }

  return {load, snap, metrics};
})();
