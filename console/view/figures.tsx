/** Numbers and sizes as people read them, and a row of figures with their names. */

export function countText(count: number): string {
  return count.toLocaleString("en");
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytesText(bytes: number): string {
  let [size, unit] = [bytes, 0];
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

export interface Figure {
  readonly name: string;
  readonly value: string;
}

export function Figures({ figures }: { readonly figures: readonly Figure[] }) {
  return (
    <dl class="figures">
      {figures.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd title={value}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
