// What a page does beside being read: copies text, sorts and filters tables, draws the bar of a
// chosen trial, brushes parallel coordinates.
'use strict';
document.documentElement.classList.add('scripted');

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.addEventListener('click', async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {  // pages of file:// may not have the clipboard
      getSelection().selectAllChildren(source);
      document.execCommand('copy');
    }
    const before = button.textContent;
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}

// A cell's data-sort is a number or a text; an empty one comes last in both directions.
function compare(a, b, descending) {
  if (a === b) return 0;
  if (a === '') return 1;
  if (b === '') return -1;
  const difference = Number(a) - Number(b);
  const order = Number.isNaN(difference) ? a.localeCompare(b) : difference;
  return descending ? -order : order;
}

for (const table of document.querySelectorAll('table.sortable')) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const descending = head.getAttribute('aria-sort') === 'ascending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
      const rows = [...body.rows].sort((a, b) => compare(key(a), key(b), descending));
      body.append(...rows);
    });
  });
}

for (const input of document.querySelectorAll('input[data-filters]')) {
  const table = document.getElementById(input.dataset.filters);
  const count = document.getElementById(input.dataset.counts);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) ++shown;
    }
    count.textContent = `${shown} of ${table.tBodies[0].rows.length} trials`;
  });
}

// Draws the bar of the trial that is chosen from the numbers of a table: trial, mark, whole, then its parts.
for (const select of document.querySelectorAll('select[data-picks]')) {
  const table = document.getElementById(select.dataset.picks);
  const drawing = select.closest('.picker').querySelector('svg');
  const styles = select.dataset.styles.split(',');
  const [left, width, most] = ['left', 'width', 'most'].map((name) => Number(select.dataset[name]));
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const row of table.tBodies[0].rows) select.add(new Option(row.cells[0].textContent, row.sectionRowIndex));
  const add = (tag, attributes, text) => {
    const shape = document.createElementNS(drawing.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
    if (text) shape.textContent = text;
    drawing.append(shape);
    return shape;
  };
  const place = (value) => left + width * Math.min(1, value / most);
  select.addEventListener('change', () => {
    drawing.replaceChildren();
    const cells = select.value === '' ? [] : [...table.tBodies[0].rows[select.value].cells].map((c) => c.textContent);
    const says = cells.length === 0 ? 'none' : `trial ${cells[0]}: ${names[2]} ${cells[2]}` +
        (cells[1] === '' ? '' : `, ${names[1]} ${cells[1]}`);
    drawing.setAttribute('aria-label', `The trial that is chosen: ${says}`);
    if (cells.length === 0) return;
    add('text', {x: left, y: 13}, says);
    let sum = 0;
    styles.forEach((style, i) => {
      const from = place(sum);
      sum += Number(cells[3 + i]);
      const part = add('rect', {x: from, y: 18, width: place(sum) - from, height: 16, class: style});
      const tip = document.createElementNS(drawing.namespaceURI, 'title');
      tip.textContent = `${names[3 + i]}: ${cells[3 + i]}`;
      part.append(tip);
    });
    if (cells[1] !== '') add('path', {d: `M${place(Number(cells[1]))} 18l6 8l-6 8l-6 -8z`, class: 'measured'});
  });
}

// Dragging along an axis keeps the lines that cross it there; a click on it lets all through again.
for (const drawing of document.querySelectorAll('svg.parallel')) {
  const lines = [...drawing.querySelectorAll('.trial')].map((path) => ({
    path, places: path.dataset.places.split(' ').map(Number),
  }));
  const kept = new Map();
  const apply = () => {
    for (const {path, places} of lines) {
      const isIn = [...kept].every(([axis, [low, high]]) => places[axis] >= low && places[axis] <= high);
      path.classList.toggle('out', !isIn);
    }
  };
  drawing.querySelectorAll('.axis').forEach((group) => {
    const axis = Number(group.dataset.axis);
    const rod = group.querySelector('.brush');
    const top = Number(rod.getAttribute('y'));
    const height = Number(rod.getAttribute('height'));
    const shown = rod.cloneNode(false);
    shown.setAttribute('class', 'brushed');
    shown.setAttribute('height', 0);
    shown.style.pointerEvents = 'none';
    group.append(shown);
    const place = (event) => {
      const box = rod.getBoundingClientRect();
      return Math.min(1, Math.max(0, (box.bottom - event.clientY) / box.height));
    };
    let from = null;
    const show = (low, high) => {
      shown.setAttribute('y', top + (1 - high) * height);
      shown.setAttribute('height', (high - low) * height);
    };
    rod.addEventListener('pointerdown', (event) => { from = place(event); rod.setPointerCapture(event.pointerId); });
    rod.addEventListener('pointermove', (event) => {
      if (from === null) return;
      const to = place(event);
      show(Math.min(from, to), Math.max(from, to));
    });
    rod.addEventListener('pointerup', (event) => {
      const to = place(event);
      const margin = 0.02;
      if (Math.abs(to - from) < margin) {
        kept.delete(axis);
        show(0, 0);
      } else {
        kept.set(axis, [Math.min(from, to) - margin, Math.max(from, to) + margin]);
      }
      from = null;
      apply();
    });
  });
}
