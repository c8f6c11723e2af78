// Lanes as pixels. The area of a colour is its share of time: where a pixel stands for several
// columns or rows, their kinds are stacked in it, useful time below, nothing on top.
"use strict";

const timelineLanes = (() => {
  const SMALL = 8; // pixels in which shares cannot be stacked

  // Paint all rows of the cells into an image, from one column to another.
  // `cells`: numbers of kinds, `columns` to a row; `colours`: of each kind; `gap`: pixels between
  // rows where they are high.
  function paint(image, {cells, columns, colours, from, to, gap}) {
    const {width, height} = image;
    const pixels = new Uint32Array(image.data.buffer);
    const starts = new Int32Array(width), ends = new Int32Array(width);
    for (let x = 0; x < width; x++) {
      starts[x] = Math.min(from + x / width * (to - from), columns - 1);
      ends[x] = Math.min(Math.max(from + (x + 1) / width * (to - from), starts[x] + 1), columns);
    }
    const rows = cells.length / columns;
    const lines = Math.min(rows, height);
    const between = height / lines >= 6 * gap ? gap : 0;
    pixels.fill(colours[0]);
    for (let i = 0; i < lines; i++) {
      const top = Math.round(i * height / lines);
      const bottom = Math.round((i + 1) * height / lines) - between;
      const row = Math.floor(i * rows / lines);
      const end = Math.max(Math.floor((i + 1) * rows / lines), row + 1);
      line({pixels, width, top, bottom}, {cells, columns, colours, row, end, starts, ends});
    }
  }

  function line({pixels, width, top, bottom}, {cells, columns, colours, row, end, starts, ends}) {
    const height = bottom - top;
    const shares = new Int32Array(colours.length);
    for (let x = 0; x < width; x++) {
      const all = (ends[x] - starts[x]) * (end - row);
      let at = (bottom - 1) * width + x;
      shares.fill(0);
      for (let r = row; r < end; r++) {
        for (let i = r * columns + starts[x]; i < r * columns + ends[x]; i++) shares[cells[i]]++;
      }
      // Neighbours take turns (1/16 to 15/16 of a pixel) where shares cannot be stacked; it adds up.
      const turn = height < SMALL ? (x * 5 % 8 + .5) / 8 : .5;
      let number = 1, below = shares[1];
      for (let y = 0; y < height; y++, at -= width) {
        const share = (y + turn) / height * all;
        while (number && below <= share) {
          number = (number + 1) % colours.length;
          below += shares[number];
        }
        pixels[at] = colours[number];
      }
    }
  }

  // The stretch of equal cells around one.
  function stretch(cells, columns, row, column) {
    const base = row * columns, kind = cells[base + column];
    let from = column, to = column + 1;
    while (from > 0 && cells[base + from - 1] === kind) from--;
    while (to < columns && cells[base + to] === kind) to++;
    return [from, to];
  }

  return {paint, stretch};
})();
