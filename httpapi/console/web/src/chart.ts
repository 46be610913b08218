// A chart of lines over time, drawn by uPlot.
import uPlot from "uplot";
import { valueWords } from "./figuresdata";

const height = 150;
const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

export interface ChartHandle {
  set(columns: uPlot.AlignedData): void;
  close(): void;
}

const clocks = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** clock says a time of the day; seconds that are none are left out. */
function clock(at: number): string {
  return clocks.format(at * 1000).replace(/:00$/, "");
}

/** open draws into host. told is called with the values under the pointer; with none, when it has left. */
export function open(host: HTMLElement, nodes: string[], columns: uPlot.AlignedData, told: (values?: (number | null)[]) => void): ChartHandle {
  let plot: uPlot | undefined;
  let newest = columns;
  const draw = () => {
    plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--quiet"), font: "11px system-ui, sans-serif", grid: { stroke: color("--border"), width: 1 }, ticks: { show: false } };
    plot = new uPlot({
      width: Math.max(host.clientWidth, 100), height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: "figures" } },
      scales: { x: { range: (_u, min, max) => [Math.min(min, max - 60), max] }, y: { range: (_u, _min, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
      axes: [{ ...axis, size: 24, space: 70, values: (_u, times) => times.map(clock) }, { ...axis, size: 44, values: (_u, ticks) => ticks.map((t) => valueWords(t)) }],
      series: [{}, ...nodes.map((label, i) => ({
        label, stroke: color(`--series-${i % 8}`), width: 1.5, dash: dashes[i % dashes.length], points: { size: 4 },
      }))],
      hooks: {
        setCursor: [(u) => {
          const at = u.cursor.idx;
          told(at === null || at === undefined || (u.cursor.left ?? -1) < 0 ? undefined : u.data.slice(1).map((line) => line[at] ?? null));
        }],
      },
    }, newest, host);
  };
  draw();
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", draw);
  const resized = new ResizeObserver(() => plot?.setSize({ width: Math.max(host.clientWidth, 100), height }));
  resized.observe(host);
  return {
    set(columns) {
      newest = columns;
      plot?.setData(columns);
    },
    close() {
      scheme.removeEventListener("change", draw);
      resized.disconnect();
      plot?.destroy();
    },
  };
}
