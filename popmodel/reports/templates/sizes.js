// Other sizes of a predicted run: what was predicted as it is, interpolated between two sizes of the
// problem (runtimes as powers of it).
"use strict";
popmodel.section("sizes", (root, {parameter, rows, value: first, split}) => {
  const by = id => document.getElementById(`sizes-${id}`);
  const inputs = ["value", "processes", "threads"].filter(by);
  const asked = {value: first, processes: split[0], threads: split[1]};

  // Two rows of the same split around a value, and how far it is from one to the other.
  function around(mine, value) {
    const low = mine.findLast(row => row.value <= value), high = mine.find(row => row.value >= value);
    return low && high && [low, high, low === high ? 0 : Math.log(value / low.value) / Math.log(high.value / low.value)];
  }

  function between(low, high, share, power) {
    if (low === null || high === null) return null;
    return power ? low * (high / low) ** share : low + (high - low) * share;
  }

  function told(name, [low, high, share], write) {
    const [value, from, to] = ["value", "low", "high"].map(
      end => between(low[name][end], high[name][end], share, name === "runtime"));
    return `${write(value)} (${from === null ? low[name].why || "no interval" : `90 %: ${write(from)} to ${write(to)}`})`;
  }

  function show() {
    const now = {...asked, ...Object.fromEntries(inputs.map(id => [id, Number(by(id).value)]))};
    const mine = rows.filter(row => row.processes === now.processes && row.threads === now.threads);
    const found = around(mine, now.value);
    const what = `${now.processes} x ${now.threads}${parameter && `, ${parameter} = ${now.value}`}`;
    by("answer").textContent = found
      ? `${what}: runtime ${told("runtime", found, popmodel.time)}, parallel efficiency ${told("parallel_efficiency", found, popmodel.percent)}`
        + (found[2] ? `; interpolated between ${parameter} = ${found[0].value} and ${found[1].value}` : "")
      : `${what}: ${mine.length ? `${parameter} must be from ${mine[0].value} to ${mine.at(-1).value}` : "not predicted, or not possible on this machine"}`;
  }

  for (const id of inputs) {
    by(id).value = popmodel.state.get(`sizes-${id}`) ?? asked[id];
    by(id).addEventListener("input", () => {
      popmodel.state.set(`sizes-${id}`, Number(by(id).value) === asked[id] ? null : by(id).value);
      show();
    });
  }
  by("inputs").hidden = false;
  show();
});
