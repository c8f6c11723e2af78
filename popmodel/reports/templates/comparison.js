// Two runs beside each other: both can be chosen. What is written here, Python writes as well for
// the two runs that the page begins with.
"use strict";
popmodel.section("comparison", (root, data) => {
  const SHOWN = 12, CAUSES = 3, SMALL = 0.005, ALIKE = 5e-4; // as in Python
  const find = name => [...root.querySelectorAll(`.comparison-${name}`)];
  const [baseSelect] = find("choose-base");
  const [otherSelect] = find("choose-other");

  // --- Words --------------------------------------------------------------------------------------
  const percent = value => popmodel.percent(value);
  const time = seconds => (seconds === null ? "-" : popmodel.time(seconds, 3));
  const signed = seconds => (seconds > 0 ? "+" : "") + popmodel.time(seconds, 3);
  const written = {
    time: value => popmodel.time(value),
    count: value => value.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2"),
    frequency: value => `${(value / 1e9).toFixed(3)} GHz`,
    number: value => popmodel.count(value),
    efficiency: percent,
    ratio: value => value.toFixed(3),
    size: popmodel.size,
  };

  function points(difference, unit = "") {
    const text = (100 * difference).toFixed(1);
    if (Number(text) === 0) return `0.0${unit}`;
    return `${difference > 0 ? "+" : ""}${text}${unit}`;
  }

  // --- Differences --------------------------------------------------------------------------------
  // The runtime is a product of factors, so that the logarithms of their ratios divide its change.
  function effects(base, other) {
    const [one, two] = [data.runs[base], data.runs[other]];
    const change = two.runtime - one.runtime;
    const mean = change === 0 ? one.runtime : change / Math.log(two.runtime / one.runtime);
    const found = data.divisions[data.pairs[base][other]].map(([name, kind, sign]) => {
      const [before, after] = [one.values[name], two.values[name]];
      const effect = mean * sign * Math.log(after / before);
      return {name, base: written[kind](before), other: written[kind](after), effect};
    });
    return found.sort((first, second) => Math.abs(second.effect) - Math.abs(first.effect));
  }

  function sentence(base, other, causes) {
    const [one, two] = [data.runs[base], data.runs[other]];
    const change = two.runtime - one.runtime;
    const times = `${popmodel.time(two.runtime)} against ${popmodel.time(one.runtime)}`;
    let said = `${two.name} takes as long as ${one.name}: ${times}.`;
    if (Math.abs(change) >= ALIKE * one.runtime) {
      const size = `${time(Math.abs(change))} (${percent(Math.abs(change) / one.runtime)})`;
      said = `${two.name} takes ${size} ${change > 0 ? "longer" : "less"} than ${one.name}: ${times}.`;
    }
    const named = causes.slice(0, CAUSES)
      .filter(cause => Math.abs(cause.effect) >= SMALL * one.runtime)
      .map(cause => `${cause.name}, ${cause.base} to ${cause.other} (${signed(cause.effect)})`);
    return named.length ? `${said} Largest causes: ${named.join("; ")}.` : said;
  }

  function differences(places, base, other) {
    const rows = places.names
      .map((name, place) => ({name, base: places.times[base][place], other: places.times[other][place]}))
      .filter(row => row.base !== null || row.other !== null);
    for (const row of rows) {
      const unknown = (row.base === null || row.other === null) && !places.in_full;
      row.difference = unknown ? null : (row.other ?? 0) - (row.base ?? 0);
      row.rank = Math.abs(row.difference ?? (row.base || row.other));
    }
    rows.sort((one, two) => two.rank - one.rank);
    const left = rows.splice(SHOWN);
    if (left.length) {
      const sum = key => left.reduce((total, row) => total + (row[key] ?? 0), 0);
      const sums = {name: `${popmodel.count(left.length)} more`, base: sum("base"), other: sum("other")};
      rows.push({...sums, difference: places.in_full ? sums.other - sums.base : null});
    }
    return rows;
  }

  // --- Tables -------------------------------------------------------------------------------------
  function row(name, texts) {
    const made = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    made.append(head);
    for (const text of texts) made.insertCell().textContent = text;
    return made;
  }

  function draw() {
    const known = (key, usual) => {
      const asked = popmodel.state.get(key);
      return asked !== null && Number(asked) in data.runs ? Number(asked) : usual;
    };
    const base = known("comparison.base", data.base);
    const other = known("comparison.other", data.other);
    baseSelect.value = base;
    otherSelect.value = other;
    for (const head of find("base")) head.textContent = data.runs[base].name;
    for (const head of find("other")) head.textContent = data.runs[other].name;

    const causes = effects(base, other);
    const largest = Math.max(...causes.map(cause => Math.abs(cause.effect))) || 1;
    find("sentence")[0].textContent = sentence(base, other, causes);
    find("factors")[0]?.replaceChildren(...causes.map(cause => {
      const share = points(cause.effect / data.runs[base].runtime, " %");
      const made = row(cause.name, [cause.base, cause.other, signed(cause.effect), share, ""]);
      made.lastChild.className = cause.effect > 0 ? "comparison-more" : "comparison-fewer";
      made.lastChild.style.setProperty("--share", `${(100 * Math.abs(cause.effect) / largest).toFixed(2)}%`);
      return made;
    }));
    find("amounts")[0].replaceChildren(...data.amounts.map(({name, kind, values}) => {
      const [before, after] = [values[base], values[other]];
      const shown = [before, after].map(value => (value === null ? "-" : written[kind](value)));
      const known = before && after !== null;
      return row(name, [...shown, known ? points((after - before) / before, " %") : "-"]);
    }));
    for (const [number, table] of find("places").entries()) {
      table.replaceChildren(...differences(data.places[number], base, other).map(one => row(one.name, [
        time(one.base), time(one.other), one.difference === null ? "-" : signed(one.difference),
      ])));
    }
    for (const [number, table] of find("family").entries()) {
      table.replaceChildren(...data.families[number].map((values, line) => {
        const [before, after] = [values[base], values[other]];
        const [name, depth] = data.labels[number][line];
        const shown = [before, after].map(value => (value === null ? "-" : percent(value)));
        const made = row(name, [...shown, before === null || after === null ? "-" : points(after - before)]);
        made.firstChild.style.setProperty("--depth", depth);
        return made;
      }));
    }
  }

  function choose(base, other) {
    popmodel.state.set("comparison.base", base);
    popmodel.state.set("comparison.other", other);
    draw();
  }
  for (const select of [baseSelect, otherSelect]) {
    select.addEventListener("change", () => choose(baseSelect.value, otherSelect.value));
  }
  find("swap")[0].addEventListener("click", () => choose(otherSelect.value, baseSelect.value));
  for (const key of ["base", "other"]) popmodel.state.watch(`comparison.${key}`, draw);
  draw();
  find("which")[0].hidden = false;
});
