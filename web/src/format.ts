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
  const [value, unit] = count >= 1e9 ? [count / 1e9, "B"] : [count / 1e6, "M"];
  return `${value.toPrecision(3).replace(/\.0+$/, "")}${unit}`;
}
