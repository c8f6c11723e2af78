// A run as typed arrays, as popmodel.reports.html.page_timeline packed it. Times are columns from the
// left end; a column lasts `step` nanoseconds.
"use strict";

const timelineData = (() => {
  const FINE = 16; // messages and paths count in sixteenths of a column

  // A run with its panels: measured above the ideal replay, on one axis. In the cells of a panel,
  // row after row, stands what is done, as a number.
  async function load(told) {
    const panel = async (title, of, end, messages, path = null) => ({
      title, cells: await popmodel.unpack(told[of]), end: end / told.step,
      messages: await arrows(messages, of), path: await stretches(path),
    });
    const panels = [await panel("measured", "measured", told.end - told.begin, told.messages)];
    if (told.ideal) {
      panels.push(await panel("ideal replay", "ideal", told.ideal_end, told.ideal_messages, told.path));
    }
    return {
      ...told, panels, rows: told.labels.length, total: Math.max(...panels.map(one => one.end)),
      seconds: column => (told.begin + column * told.step) / 1e9,
      column: seconds => (seconds * 1e9 - told.begin) / told.step,
      window: told.window && await timelineWindow.load(told.window, told),
      colours: told.kinds.map(kind => (kind.group ? `var(--kind-${kind.id})` : "var(--paper)")),
    };
  }

  async function table(name, width) {
    const values = await popmodel.unpack(name);
    const rows = values.length / width;
    return Array.from({length: width}, (_, i) => values.subarray(i * rows, (i + 1) * rows));
  }

  async function arrows(told, of) {
    if (!told) return null;
    const [from, to, after, duration] = await table(told[of], 4);
    let at = 0;
    const begin = Float64Array.from(after, step => (at += step) / FINE);
    return {...told, from, to, begin, end: begin.map((time, i) => time + duration[i] / FINE)};
  }

  async function stretches(told) {
    if (!told) return null;
    const [row, begin, end] = await table(told.ideal, 3);
    return {...told, row, begin: Float64Array.from(begin, at => at / FINE), end: Float64Array.from(end, at => at / FINE)};
  }

  // Numbers of the messages, or of the stretches of the critical path, that are seen.
  const inView = ({from, to}, lines) =>
    [...lines?.begin.keys() ?? []].filter(i => lines.end[i] >= from && lines.begin[i] <= to);

  // Writes moments of a run: in one unit, with as many decimals as tell `step` nanoseconds apart.
  function clock(run, step = run.step) {
    const last = run.begin + run.total * run.step;
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3]].find(one => last >= one[1]) ?? ["ns", 1];
    const decimals = Math.min(Math.max(Math.ceil(Math.log10(size / step) - 1e-9), 0), 9);
    return column => `${((run.begin + column * run.step) / size).toFixed(decimals)} ${unit}`;
  }

  const lasting = (run, columns) => popmodel.time(columns * run.step / 1e9, 3);

  return {load, inView, clock, lasting};
})();
