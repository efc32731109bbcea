// A table that leaves the page: as Markdown, CSV, a drawing or a picture of it.

import type { Verdict } from "../answers";
import { h } from "../dom";
import type { Say } from "../words";

/// A cell: lines for people, and the plain value for programs where it is another.
export interface Cell { lines: string[]; value?: string | number | null; tone?: Verdict | undefined }
export interface Table { name: string; title: string; note: string; head: string[]; rows: { head: string; cells: Cell[] }[] }

const lines = (table: Table): string[][] =>
  [table.head, ...table.rows.map((row) => [row.head, ...row.cells.map((cell) => cell.lines.join("; "))])];

export function markdown(table: Table): string {
  const row = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  const [head = [], ...rows] = lines(table);
  return [`**${table.title}**`, "", row(head), row(head.map(() => "---")), ...rows.map(row), "", table.note, ""].join("\n");
}

export function csv(table: Table): string {
  const cell = (value: string | number) => {
    // A program that reads a sheet would take this for a formula.
    const text = typeof value === "string" && /^[=+@-]/.test(value) ? `'${value}` : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = table.rows.map((row) => [row.head, ...row.cells.map((one) => (one.value === undefined ? one.lines.join("; ") : (one.value ?? "")))]);
  return [table.head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

const SIZE = 15;
const LINE = 21;
const PAD = 12;
const WIDEST = 34;
const TONES: Record<Verdict, [back: string, ink: string]> = {
  fits: ["#e2f4e9", "#12683a"], low_headroom: ["#fdf0d9", "#8a5200"], may_not_fit: ["#fde7e5", "#b3261e"], does_not_fit: ["#f1f2f4", "#556172"],
};

/// Letters of the width of a figure; those of Chinese are twice as wide.
const wide = (text: string) => [...text].reduce((sum, letter) => sum + (/[\u2e80-\uffef]/.test(letter) ? 1.75 : /[A-Z]/.test(letter) ? 1.15 : 1), 0);

/// Lines that are no wider than a column may be.
function folded(line: string): string[] {
  const folded: string[] = [];
  let current = "";
  for (const word of line.split(/(?<=[\s，；、])/)) {
    if (current && wide(current + word) > WIDEST) {
      folded.push(current.trim());
      current = "";
    }
    current += word;
  }
  return [...folded, current.trim()];
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export function drawing(table: Table): string {
  const rows = [
    table.head.map((text) => ({ lines: folded(text), tone: undefined as Verdict | undefined })),
    ...table.rows.map((row) => [{ lines: folded(row.head), tone: undefined as Verdict | undefined }, ...row.cells.map((cell) => ({ lines: cell.lines.flatMap(folded), tone: cell.tone }))]),
  ];
  const widths = table.head.map((_, column) => Math.ceil(Math.max(6, ...rows.map((row) => Math.max(...(row[column]?.lines ?? [""]).map(wide)))) * SIZE * 0.56) + 2 * PAD);
  const heights = rows.map((row) => Math.max(...row.map((cell) => cell.lines.length)) * LINE + PAD);
  const top = 64;
  const width = Math.max(widths.reduce((a, b) => a + b, 0) + 2 * PAD, Math.ceil(wide(table.title) * 13) + 2 * PAD, Math.ceil(wide(table.note) * 7.4) + 2 * PAD);
  const height = top + heights.reduce((a, b) => a + b, 0) + 44;
  const parts: string[] = [];
  let y = top;
  rows.forEach((row, index) => {
    let x = PAD;
    const tall = heights[index] ?? 0;
    row.forEach((cell, column) => {
      const room = widths[column] ?? 0;
      const [back, ink] = cell.tone ? TONES[cell.tone] : ["none", index === 0 ? "#556172" : "#17202c"];
      if (cell.tone) parts.push(`<rect x="${x + 2}" y="${y + 2}" width="${room - 4}" height="${tall - 4}" rx="6" fill="${back}"/>`);
      cell.lines.forEach((line, place) => parts.push(
        `<text x="${x + PAD}" y="${y + PAD / 2 + 15 + place * LINE}" fill="${ink}"${index === 0 || column === 0 || place === 0 ? ' font-weight="600"' : ""}>${escaped(line)}</text>`));
      x += room;
    });
    y += tall;
    parts.push(`<line x1="${PAD}" x2="${width - PAD}" y1="${y}" y2="${y}" stroke="#d9dfe8"/>`);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, 'Segoe UI', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans', sans-serif" font-size="${SIZE}">`
    + `<title>${escaped(table.title)}</title><rect width="100%" height="100%" fill="#ffffff"/>`
    + `<text x="${2 * PAD}" y="38" font-size="22" font-weight="700" fill="#17202c">${escaped(table.title)}</text>${parts.join("")}`
    + `<text x="${2 * PAD}" y="${height - 16}" font-size="13" fill="#556172">${escaped(table.note)}</text></svg>`;
}

/// Twice as many points as the drawing has, for projectors and chats.
async function pixels(drawn: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn)}`;
  await image.decode();
  const canvas = h("canvas", { width: image.naturalWidth * 2, height: image.naturalHeight * 2 });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("cannot create the image"))), "image/png"));
}

export function save(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}

/// Buttons that save a table as it is when they are pressed.
export function exports(table: () => Table, say: Say): HTMLElement {
  const text = (content: string, type: string) => new Blob([content], { type: `${type};charset=utf-8` });
  const kinds: [string, string, (table: Table) => Blob | Promise<Blob>][] = [
    ["PNG", "png", (table) => pixels(drawing(table))], ["SVG", "svg", (table) => text(drawing(table), "image/svg+xml")],
    ["Markdown", "md", (table) => text(markdown(table), "text/markdown")],
    // The mark tells sheets that it is not in the encoding of the machine.
    ["CSV", "csv", (table) => text(`\ufeff${csv(table)}`, "text/csv")],
  ];
  const buttons = kinds.map(([label, ending, made]) => h("button", {
    type: "button", class: "small", "aria-label": `${say("exportAs")} ${label}`,
    click: async () => { const shown = table(); save(`${shown.name}.${ending}`, await made(shown)); },
  }, label));
  const copy = h("button", { type: "button", class: "small" }, say("copyMarkdown"));
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(markdown(table()));
    copy.textContent = say("copied");
    setTimeout(() => { copy.textContent = say("copyMarkdown"); }, 1500);
  });
  return h("div", { class: "buttons exports" }, h("span", { class: "soft" }, say("exportAs")), ...buttons, copy);
}
