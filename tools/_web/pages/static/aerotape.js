"use strict";
// Live figures of the overview, plots, and requests to try. Every text is set as text, never as HTML.

const ROOT = document.documentElement.dataset.root;  // the prefix of paths behind a proxy
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function size(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${UNITS[unit]}`;
}

function cell(row, name, text) {
  const made = row.insertCell();
  made.className = name;
  made.textContent = text;
  return made;
}

function showLive(table) {
  const body = table.tBodies[0];
  let last = null;
  const events = new EventSource(`${ROOT}/live`);
  events.onerror = () => {  // after an end the browser connects again; after a refusal it does not
    document.getElementById("stale").hidden = events.readyState !== EventSource.CLOSED;
  };
  events.onmessage = (event) => {
    const state = JSON.parse(event.data);
    const before = new Map(last ? last.recordings.map((each) => [each.recording_id, each]) : []);
    const seconds = last ? (state.time_ms - last.time_ms) / 1000 : 0;
    const rows = new Map([...body.rows].map((row) => [Number(row.dataset.id), row]));
    let sum = 0;
    for (const each of state.recordings) {
      let row = rows.get(each.recording_id);
      if (row === undefined) {
        row = body.insertRow();
        row.dataset.id = each.recording_id;
        const link = document.createElement("a");
        link.href = `${ROOT}/recordings/${each.recording_id}`;
        link.textContent = each.recording_id;
        cell(row, "number", "").append(link);
        cell(row, "channel", each.channel);
        cell(row, "number", each.stream_id);
        cell(row, "number position", "");
        cell(row, "number rate", "–");
      }
      rows.delete(each.recording_id);
      row.querySelector(".position").textContent = each.position;
      const previous = before.get(each.recording_id);
      if (previous !== undefined && seconds > 0) {
        const rate = Math.max(each.position - previous.position, 0) / seconds;
        sum += rate;
        row.querySelector(".rate").textContent = `${size(rate)}/s`;
      }
    }
    for (const row of rows.values()) {
      row.remove();
    }
    if (last !== null) {
      document.getElementById("bytes-per-s").textContent = size(sum);
    }
    for (const check of state.checks) {
      const item = document.querySelector(`[data-check="${check.check}"]`);
      item.className = check.ok ? "ok" : "failed";
      item.querySelector("span").textContent = check.found;
    }
    document.getElementById("recordings").textContent = state.count;
    document.getElementById("live").textContent = state.recordings.length;
    document.getElementById("free").textContent = size(state.free_bytes);
    document.getElementById("errors").textContent = state.errors;
    last = state;
  };
}

async function showRates(place) {
  const response = await fetch(place.dataset.rates);
  const rates = response.ok ? await response.json() : [];
  if (rates.length === 0) {
    place.textContent = "There is no time index.";
    place.className = "none";
    return;
  }
  const data = [rates.map((rate) => rate.from_ns / 1e9), rates.map((rate) => rate.bytes_per_s)];
  plot(place, data, {
    label: "bytes/s",
    paths: uPlot.paths.stepped({ align: 1 }),
    text: (value) => `${size(value)}/s`,
  });
}

function plot(place, data, { label, paths, text, x = {}, scale = {} }) {
  const color = getComputedStyle(place).color;
  const axis = { stroke: color, grid: { stroke: color, width: 0.2 } };
  const options = {
    width: place.clientWidth,
    height: 260,
    scales: { x: scale, y: { range: (_plot, _least, greatest) => [0, 1.1 * greatest || 1] } },
    axes: [{ ...axis, ...x }, { ...axis, size: 90, values: (_plot, values) => values.map(text) }],
    series: [{}, { label, stroke: "#3b82f6", fill: "#3b82f622", paths }],
    legend: { show: x.values === undefined },
  };
  const made = new uPlot(options, data, place);
  addEventListener("resize", () => made.setSize({ width: place.clientWidth, height: 260 }));
}

async function showStatistics(place) {
  const response = await fetch(place.dataset.statistics);
  const found = await response.json();
  const gaps = document.getElementById("gaps");
  if (!response.ok || found.messages === 0) {
    place.textContent = response.ok ? "There is no message." : found.detail;
    place.className = "none";
    return;
  }
  const buckets = found.histogram;
  const data = [buckets.map((_each, index) => index), buckets.map((each) => each.messages)];
  plot(place, data, {
    label: "messages",
    paths: uPlot.paths.bars({ size: [0.9, 60] }),
    text: (value) => value.toLocaleString("en"),
    scale: { time: false, range: [-0.6, buckets.length - 0.4] },
    x: { incrs: [1, 2, 4, 8], values: (_plot, values) => values.map((index) => (buckets[index] ? `${buckets[index].from_bytes} B` : "")) },
  });
  const shown = found.gaps.slice(0, 20).map((gap) => `${gap.from_position} to ${gap.to_position} (${gap.kind})`);
  gaps.textContent = `Positions ${found.from_position} to ${found.to_position}: ${found.messages.toLocaleString("en")} messages, median ${found.p50_bytes} B, 99 % up to ${found.p99_bytes} B, longest ${found.max_bytes} B; `
    + (found.gap_count === 0 ? "no gap." : `${found.gap_count} gaps: ${shown.join(", ")}.`);
  gaps.className = found.gap_count === 0 ? "none" : "failed";
}

async function send(event) {
  event.preventDefault();
  const form = event.target;
  let path = ROOT + form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    if (input.dataset.in === "path") {
      path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    } else if (input.value !== "") {
      query.set(input.name, input.value);
    }
  }
  const url = query.size === 0 ? path : `${path}?${query}`;
  const response = await fetch(url, { method: form.dataset.method });
  const body = await response.text();  // as it is: JavaScript's numbers have 53 bits
  const limit = 100000;
  form.nextElementSibling.textContent = `${form.dataset.method} ${url}\n${response.status}\n\n${body.slice(0, limit)}${body.length > limit ? "…" : ""}`;
}

for (const table of document.querySelectorAll("table[data-live]")) {
  showLive(table);
}
for (const place of document.querySelectorAll("[data-rates]")) {
  showRates(place);
}
for (const place of document.querySelectorAll("[data-statistics]")) {
  showStatistics(place);
}
for (const form of document.querySelectorAll("form[data-path]")) {
  form.addEventListener("submit", send);
}
