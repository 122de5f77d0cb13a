"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const laneColor = (lane) => color(lane === "stream" || lane === "batch" ? lane : "other");
  const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
  const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const tick = (seconds, step) => {
    const [day, time] = clock(seconds).split(" ");
    return seconds % 86400 === 0 && step >= 3600 ? day.slice(5) : time.slice(0, step < 60 ? 8 : 5);
  };
  const duration = (seconds) => {
    for (const [factor, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (seconds >= 2 * factor || seconds === factor) return `${+(seconds / factor).toFixed(1)} ${unit}`;
    }
    return `${+seconds.toFixed(1)} s`;
  };
  const size = (bytes) => {
    for (const [factor, unit] of [[1e15, "PB"], [1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
      if (bytes >= factor) return `${+(bytes / factor).toPrecision(3)} ${unit}`;
    }
    return `${bytes} B`;
  };

  const valueAxis = (format, title) => ({
    beginAtZero: true,
    ticks: { callback: format },
    title: { display: true, text: title },
    grid: { color: color("line") },
  });
  const wholeAxis = (title) => {
    const axis = valueAxis((value) => value.toLocaleString("en"), title);
    return { ...axis, ticks: { ...axis.ticks, precision: 0 } };
  };
  const CHARACTER = 16; // Pixels of the chart for each character of a label: half of it is for the labels.
  const nameAxis = {
    grid: { display: false },
    ticks: {
      callback(value) {
        const [label, most] = [this.getLabelForValue(value), Math.floor(this.chart.width / CHARACTER)];
        return label.length > most ? `${label.slice(0, most - 1)}…` : label;
      },
    },
  };
  const timeAxis = (times) => {
    const from = times.reduce((one, other) => Math.min(one, other));
    const to = times.reduce((one, other) => Math.max(one, other));
    const step = STEPS.find((seconds) => (to - from) / seconds <= 12) ?? Math.ceil((to - from) / 12 / 86400) * 86400;
    return {
      type: "linear",
      min: Math.floor(from / step) * step,
      max: (Math.floor(to / step) + 1) * step,
      ticks: { stepSize: step, callback: (value) => tick(value, step), maxRotation: 0, autoSkipPadding: 12 },
      title: { display: true, text: "UTC" },
      grid: { color: color("line") },
    };
  };
  const DURATIONS = [[0.01, 2], [1, 1.5], [60, 1.5], [3600, 1.2], [86400, 3]].flatMap(([unit, decades]) =>
    [1, 2, 5, 10, 20, 50, 100, 200, 500].filter((number) => number <= 10 ** decades).map((number) => number * unit));
  const MAX_DURATIONS = 8;
  const durationAxis = (title, values) => {
    const low = DURATIONS.findLast((value) => value <= Math.min(...values)) ?? DURATIONS[0];
    const above = DURATIONS.find((value) => value >= Math.max(...values)) ?? DURATIONS.at(-1);
    const high = above > low ? above : DURATIONS[DURATIONS.indexOf(low) + 1];
    const within = DURATIONS.filter((value) => value >= low && value <= high);
    const every = Math.ceil(within.length / MAX_DURATIONS);
    return {
      ...valueAxis(duration, title),
      type: "logarithmic",
      beginAtZero: false,
      min: low,
      max: high,
      afterBuildTicks: (axis) => {
        axis.ticks = within.filter((_, number) => number % every === 0).map((value) => ({ value }));
      },
    };
  };
  const points = (times, values) => times.map((time, number) => ({ x: time, y: values[number] }));
  const MANY_RUNS = 30;
  const FEW = 24;
  const GAP = 4;
  // A line ends where nothing arrived for some intervals: files before and after have nothing to do with each other.
  const broken = (series, values) => {
    const steps = series.time.slice(1).map((time, number) => time - series.time[number]);
    const usual = [...steps].sort((one, other) => one - other)[Math.floor(steps.length / 2)];
    return points(series.time, values).flatMap((point, number) =>
      steps[number - 1] > GAP * usual ? [{ x: point.x - usual, y: NaN }, point] : [point]);
  };
  const bars = (series) => points(series.time, series.p50).flatMap(({ x, y }, number) =>
    [{ x, y }, { x, y: series.p99[number] }, { x, y: NaN }]);
  const allTimes = (lanes) => Object.values(lanes).flatMap((lane) => lane.time);

  const charts = {
    latency(lanes) {
      const datasets = Object.entries(lanes).flatMap(([lane, series]) => {
        const few = series.time.length <= FEW;
        const look = { borderColor: laneColor(lane), backgroundColor: laneColor(lane), borderWidth: 2, pointRadius: 0 };
        const half = { ...look, label: lane, half: true };
        const most = { ...look, label: `${lane}, 99 %`, pointHitRadius: 6 };
        return few
          ? [{ ...half, data: points(series.time, series.p50), showLine: false, pointRadius: 4 },
             { ...most, data: bars(series) }]
          : [{ ...half, data: broken(series, series.p50), pointRadius: 1 },
             { ...most, data: broken(series, series.p99), borderWidth: 0, fill: "-1", backgroundColor: `${laneColor(lane)}40` }];
      });
      const values = Object.values(lanes).flatMap((series) => [...series.p50, ...series.p99]);
      return {
        type: "line",
        data: { datasets },
        options: {
          scales: { x: timeAxis(allTimes(lanes)), y: durationAxis("arrival to publication", values) },
          plugins: { legend: { labels: { filter: (item, data) => data.datasets[item.datasetIndex].half } }, tooltip: { callbacks: {
            title: (items) => clock(items[0].parsed.x),
            label: (item) => `${item.dataset.label}: ${duration(item.parsed.y)}`,
          } } },
        },
      };
    },
    backlog(lanes) {
      const datasets = Object.entries(lanes).map(([lane, series]) => ({
        label: lane,
        data: points(series.time, series.bytes),
        borderColor: laneColor(lane),
        backgroundColor: `${laneColor(lane)}33`,
        fill: true,
        stepped: "before",
        borderWidth: 2,
        pointRadius: 0,
      }));
      return {
        type: "line",
        data: { datasets },
        options: {
          interaction: { mode: "nearest", axis: "x", intersect: false },
          scales: { x: timeAxis(allTimes(lanes)), y: valueAxis(size, "waiting") },
          plugins: { tooltip: { callbacks: {
            title: (items) => clock(items[0].parsed.x),
            label: (item) => `${item.dataset.label}: ${size(item.parsed.y)}`,
          } } },
        },
      };
    },
    runs(runs) {
      const kinds = [...new Set(runs.map((run) => run.kind))];
      const kindColor = (kind) => kind.includes(",") ? laneColor(kind.split(",")[0]) : color("bad");
      const datasets = kinds.map((kind) => ({
        label: kind,
        data: runs.map((run) => (run.kind === kind ? [run.start, run.end] : null)),
        backgroundColor: kindColor(kind),
        minBarLength: 3,
      }));
      const times = runs.flatMap((run) => [run.start, run.end]);
      return {
        type: "bar",
        rows: runs.length,
        dense: runs.length > MANY_RUNS,
        data: { labels: runs.map((run) => run.name.split("#")[0].slice(0, 12)), datasets },
        options: {
          indexAxis: "y",
          scales: {
            x: timeAxis(times),
            y: { stacked: true, grid: { display: false }, ticks: { display: runs.length <= MANY_RUNS } },
          },
          plugins: { tooltip: { callbacks: {
            title: (items) => runs[items[0].dataIndex].name,
            label: (item) => {
              const run = runs[item.dataIndex];
              const spent = `${clock(run.start)} to ${clock(run.end)}, ${run.files.toLocaleString("en")} files`;
              return run.reason ? [spent, run.reason] : spent;
            },
          } } },
        },
      };
    },
    rejects(reasons) {
      return {
        type: "bar",
        rows: Object.keys(reasons).length,
        data: {
          labels: Object.keys(reasons),
          datasets: [{ label: "lines", data: Object.values(reasons), backgroundColor: color("bad") }],
        },
        options: {
          indexAxis: "y",
          scales: { x: wholeAxis("lines"), y: nameAxis },
          plugins: { legend: { display: false } },
        },
      };
    },
    cost(costs) {
      return {
        type: "bar",
        rows: costs.datasets.length,
        data: {
          labels: costs.datasets,
          datasets: Object.entries(costs.lanes).map(([lane, dollars]) => ({
            label: lane, data: dollars, backgroundColor: laneColor(lane),
          })),
        },
        options: {
          indexAxis: "y",
          scales: {
            x: { ...valueAxis((value) => `$${+value.toPrecision(4)}`, "dollars"), stacked: true },
            y: { ...nameAxis, stacked: true },
          },
        },
      };
    },
  };

  const daily = (format, whole) => ({ labels, values, kinds }) => ({
    type: "bar",
    data: {
      labels,
      datasets: [{ data: values.map((value) => value || null), backgroundColor: labels.map((_, number) => color(kinds[number] ?? kinds[0])), minBarLength: 2 }],
    },
    options: {
      scales: {
        x: { grid: { display: false }, ticks: { maxRotation: 0, autoSkipPadding: 12 } },
        y: whole ? wholeAxis("") : valueAxis(format, ""),
      },
      plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => format(item.parsed.y) } } },
    },
  });
  Object.assign(charts, {
    input: daily(size),
    quarantine: daily((value) => value.toLocaleString("en"), true),
    spent: daily((value) => `$${+value.toPrecision(4)}`),
  });

  let drawn = [];
  const draw = () => {
    drawn.forEach((chart) => chart.destroy());
    Object.assign(Chart.defaults, { animation: false, maintainAspectRatio: false, color: color("text") });
    drawn = Object.entries(figures).map(([name, data]) => {
      const canvas = document.getElementById(name);
      const { rows, dense, ...chart } = charts[name](data);
      if (rows) canvas.parentElement.style.height = `${6 + rows * (dense ? 0.2 : 1.6)}rem`;
      return new Chart(canvas, chart);
    });
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  document.querySelectorAll("th").forEach((head) => {
    head.addEventListener("click", () => {
      const table = head.closest("table");
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      const order = (row) => row.cells[head.cellIndex].dataset.order;
      const numeric = head.classList.contains("number");
      const compare = (one, other) => (numeric ? order(one) - order(other) : order(one).localeCompare(order(other)));
      const rows = [...table.tBodies[0].rows].sort((one, other) => (ascending ? 1 : -1) * compare(one, other));
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    });
  });
})();
