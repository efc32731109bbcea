// Quantities as the command line writes them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/// Three significant digits in binary units.
export function bytes(amount: number): string {
  let value = amount;
  let unit = 0;
  while (value >= 1023.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  const decimals = unit === 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(decimals)} ${UNITS[unit]}`;
}

/// `8.19 B`, `671 B`: parameters in the thousands people count in.
export function parameters(count: number): string {
  // What rounds to a thousand of a unit is one of the next.
  const [size, unit] = [[1e12, "T"], [1e9, "B"], [1e6, "M"]].find(([size]) => count >= 0.9995 * Number(size)) ?? [1e6, "M"];
  const value = count / Number(size);
  const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(decimals).replace(/\.0+$/, "")}${unit}`;
}

/// A part of a step, as the command line writes it.
export function seconds(value: number): string {
  if (value >= 100) return `${value.toFixed(0)} s`;
  if (value >= 1) return `${value.toFixed(2)} s`;
  return value >= 1e-3 ? `${(value * 1e3).toFixed(1)} ms` : `${(value * 1e6).toFixed(0)} µs`;
}
