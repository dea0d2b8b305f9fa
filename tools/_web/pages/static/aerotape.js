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
  return `${unit === 0 ? Math.round(bytes) : Number(bytes.toFixed(1))} ${UNITS[unit]}`;
}

// A number with narrow spaces between groups of digits.
function spaced(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

// As formats.py has it: groups that are apart by style, so that the number is copied without separators.
function showNumber(place, number) {
  const [first, ...groups] = spaced(number).split("\u202f");
  place.replaceChildren(first, ...groups.map((digits) => {
    const group = document.createElement("span");
    group.className = "group";
    group.textContent = digits;
    return group;
  }));
}

const DAY_S = 86400;

// ISO 8601 in UTC, as the tables have it: a date at the first mark and where a day begins, else the time of day.
function times(_plot, marks, _axis, _space, increment) {
  return marks.map((seconds, index) => {
    const [date, time] = new Date(seconds * 1000).toISOString().split("T");
    const clock = time.slice(0, increment < 1 ? 12 : increment < 60 ? 8 : 5);
    if (increment >= DAY_S) {
      return date;
    }
    return index === 0 || seconds % DAY_S === 0 ? `${clock}\n${date}` : clock;
  });
}

function cell(row, name, label, text) {
  const made = row.insertCell();
  made.dataset.label = label;
  made.className = name;
  made.textContent = text;
  return made;
}

// As names.html has it.
function showName(place, { alias, channel }) {
  if (!alias) {
    place.textContent = channel;
    return;
  }
  const name = document.createElement("b");
  const detail = document.createElement("span");
  name.textContent = alias;
  detail.className = "detail";
  detail.textContent = channel;
  place.append(name, " ", detail);
}

const HEALTH_MS = 2000;

function showLive(table) {
  const body = table.tBodies[0];
  let last = null;
  const stale = document.getElementById("stale");
  let events = null;
  let problem = "";

  // A browser has six connections to a server for all its tabs: one that is not seen has none.
  function connect() {
    events?.close();
    events = document.hidden ? null : new EventSource(`${ROOT}/live`);
    if (events !== null) {
      events.onmessage = show;
      events.addEventListener("problem", (event) => {
        problem = JSON.parse(event.data);
        say(`${problem}; trying again`);
      });
      events.onerror = () => {  // after an end the browser connects again; after a refusal it does not
        say(`${problem || "the service does not respond"}; trying again`);
        problem = "";
        if (events.readyState === EventSource.CLOSED) {
          connectOnceItResponds(0);
        }
      };
    }
  }

  // A proxy refuses while the service is away. If the service does itself, the browser would ask for a user again.
  async function connectOnceItResponds(failures) {
    const response = await fetch(`${ROOT}/healthz`, { credentials: "omit" }).catch(() => null);
    if (!response?.ok) {
      setTimeout(connectOnceItResponds, HEALTH_MS, failures + 1);
    } else if (failures > 0) {
      connect();
    } else {
      say("the service refuses to send them to this user; reload the page");
    }
  }

  function say(why) {
    stale.textContent = `The figures have stopped: ${why}.`;
    stale.hidden = false;
  }

  function show(event) {
    const state = JSON.parse(event.data);
    stale.hidden = true;
    problem = "";
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
        cell(row, "number", "Id", "").append(link);
        showName(cell(row, "channel", "Name", ""), each);
        cell(row, "number", "Stream", each.stream_id);
        cell(row, "number position", "Position", "");
        cell(row, "number rate", "Rate", "–");
      }
      rows.delete(each.recording_id);
      showNumber(row.querySelector(".position"), each.position);
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
    showNumber(document.getElementById("recordings"), state.count);
    document.getElementById("live").textContent = state.recordings.length;
    document.getElementById("free").textContent = size(state.free_bytes);
    showNumber(document.getElementById("errors"), state.errors);
    last = state;
  }

  document.addEventListener("visibilitychange", connect);
  connect();
}

async function showRates(place) {
  const response = await fetch(place.dataset.rates);
  const rates = response.ok ? await response.json() : [];
  if (rates.length === 0) {
    place.textContent = "There is no time index.";
    place.className = "none";
    return;
  }
  if (rates.length === 1) {
    const [only] = rates;
    const ms = Number(((only.to_ns - only.from_ns) / 1e6).toPrecision(3));
    place.textContent = `${size(only.to_position - only.from_position)} in ${spaced(ms)} ms: too short a time for a plot.`;
    place.className = "none";
    return;
  }
  const last = rates.at(-1);  // it lasts until its end, where a further point is
  const data = [[...rates.map((rate) => rate.from_ns / 1e9), last.to_ns / 1e9], [...rates, last].map((rate) => rate.bytes_per_s)];
  plot(place, data, {
    label: "bytes/s",
    paths: uPlot.paths.stepped({ align: 1 }),
    text: (value) => `${size(value)}/s`,
    increments: POWERS_OF_TWO,
    x: { values: times },
    time: clock,
  });
}

const TREND_MS = 5000;
const POWERS_OF_TWO = Array.from({ length: 51 }, (_each, power) => 2 ** power);
const ROUND = Array.from({ length: 15 }, (_each, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

// The largest unit and the one below it: "3 d 4 h".
function lasting(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = Math.max(units.findIndex(([length]) => seconds >= length), 0);
  const parts = [];
  for (const [length, name] of units.slice(first, first + 2)) {
    parts.push(`${spaced(Math.floor(seconds / length))} ${name}`);
    seconds %= length;
  }
  return parts.join(" ");
}

// What was recorded over the last minutes or hours; the plots keep their size while they change.
function showTrend(place) {
  const buttons = [...place.querySelectorAll("[data-seconds]")];
  const plots = [
    [document.getElementById("trend-bytes"), "bytes_per_s", POWERS_OF_TWO, (value) => `${size(value)}/s`],
    [document.getElementById("trend-messages"), "messages_per_s", ROUND, (value) => `${spaced(Math.round(value))}/s`],
  ].map(([where, name, increments, text]) => {
    const data = [[], []];
    const label = name === "bytes_per_s" ? "bytes/s" : "messages/s";
    return [name, plot(where, data, { label, paths: uPlot.paths.stepped({ align: -1 }), text, increments, height: 170, x: { values: times }, time: clock })];
  });
  let seconds = 900;

  async function show() {
    const { points, full_in_s: full } = await get(`${place.dataset.trend}?seconds=${seconds}`, null, JSON.parse);
    const until = Date.now() / 1000;
    for (const [name, made] of plots) {
      made.setData([points.map((each) => each.time_ms / 1000), points.map((each) => each[name])]);
      made.setScale("x", { min: until - seconds, max: until });
    }
    const last = points.at(-1);
    if (last !== undefined && last.messages_per_s !== null) {
      document.getElementById("messages-per-s").textContent = spaced(Math.round(last.messages_per_s));
    }
    document.getElementById("full").textContent = full === null ? "–" : full > 366 * DAY_S ? "over a year" : lasting(full);
  }

  async function run() {
    try {
      if (!document.hidden) {
        await show();
      }
    } catch (error) {
      if (error.isFinal) {  // a browser would ask for a user each time
        return;
      }
    }
    setTimeout(run, TREND_MS);
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      seconds = Number(button.dataset.seconds);
      buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
      show().catch(() => {});
    });
  }
  run();
}

function clock(_plot, seconds) {
  return seconds === null ? "–" : new Date(seconds * 1000).toISOString().replace("T", " ").replace(/\.\d+/, "");
}

function plot(place, data, { label, paths, text, increments, height = 260, x = {}, scale = {}, time = null }) {
  const color = () => getComputedStyle(place).color;
  const axis = { stroke: color, grid: { stroke: color, width: 0.2 } };
  const options = {
    width: place.clientWidth,
    height,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    scales: { x: scale, y: { range: (_plot, _least, greatest) => [0, 1.1 * greatest || 1] } },
    axes: [{ ...axis, ...x }, { ...axis, size: 90, incrs: increments, values: (_plot, values) => values.map(text) }],
    series: [
      { label: "UTC", value: time },
      { label, stroke: "#3b82f6", fill: "#3b82f622", paths, points: { show: false }, value: (_plot, value) => (value === null ? "–" : text(value)) },
    ],
    legend: { show: time !== null },
  };
  const made = new uPlot(options, data, place);
  addEventListener("resize", () => made.setSize({ width: place.clientWidth, height }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => made.redraw(false));
  return made;
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
    text: spaced,
    increments: ROUND,
    scale: { time: false, range: [-0.6, buckets.length - 0.4] },
    x: { incrs: [1, 2, 4, 8], values: (_plot, values) => values.map((index) => (buckets[index] ? `${buckets[index].from_bytes} B` : "")) },
  });
  const shown = found.gaps.slice(0, 20).map((gap) => `${spaced(gap.from_position)} to ${spaced(gap.to_position)} (${gap.kind})`);
  gaps.textContent = `Positions ${spaced(found.from_position)} to ${spaced(found.to_position)}: ${spaced(found.messages)} messages, median ${found.p50_bytes} B, 99 % up to ${found.p99_bytes} B, longest ${found.max_bytes} B; `
    + (found.gap_count === 0 ? "no gap." : `${found.gap_count} gaps: ${shown.join(", ")}.`);
  gaps.className = found.gap_count === 0 ? "none" : "failed";
}

// What `cat` prints: characters that are not printable, as Python has them, are escaped.
function printable(text) {
  return text.replace(/[\p{C}\p{Z}]/gu, (character) => {
    const code = character.codePointAt(0);
    const named = { 9: "\\t", 10: "\\n", 13: "\\r", 32: " " }[code];
    const hex = code.toString(16);
    return named ?? (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`);
  });
}

// JSON whose numbers keep all digits, where the browser can: to be shown, not to calculate with.
function parsed(text) {
  return JSON.parse(text, (_key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && context?.source !== undefined ? JSON.rawJSON(context.source) : value);
}

// A number of `parsed` or of a data attribute, to calculate with.
function exact(number) {
  return BigInt(number?.rawJSON ?? number);
}

async function get(url, signal = null, parse = parsed) {
  const response = await fetch(url, { signal });
  const body = await response.text();
  if (response.ok) {
    return parse(body);
  }
  const isJson = response.headers.get("content-type").includes("json");
  const error = new Error(isJson ? JSON.parse(body).detail : body);
  error.isFinal = response.status < 500;
  throw error;
}

function messagesUrl(table, parameters) {
  return `${table.dataset.messages}/messages?${new URLSearchParams(parameters)}`;
}

// Sixteen bytes a line: their offset, in hexadecimal, and as ASCII.
function dump(hex) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 32) {
    const bytes = hex.slice(at, at + 32).match(/../g);
    const ascii = bytes.map((byte) => (byte >= "20" && byte < "7f" ? String.fromCharCode(parseInt(byte, 16)) : "."));
    lines.push(`${(at / 2).toString(16).padStart(8, "0")}  ${bytes.join(" ").padEnd(48)} ${ascii.join("")}`);
  }
  return lines.join("\n");
}

// The bytes of a message, read when they are wanted.
function addBytes(table, row) {
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "bytes";
  details.append(summary);
  details.addEventListener("toggle", async () => {
    if (!details.open || details.childElementCount > 1) {
      return;
    }
    const made = document.createElement("pre");
    made.className = "bytes";
    details.append(made);
    try {
      const [message] = await get(messagesUrl(table, { position: row.dataset.position, limit: 1, format: "hex", max_payload: table.dataset.max }));
      made.textContent = dump(message.payload) + (message.is_whole ? "" : "\n…");
      const save = document.createElement("a");
      save.href = `${table.dataset.messages}/payload?position=${row.dataset.position}`;
      save.download = "";
      save.textContent = `Save all ${spaced(message.length)} bytes`;
      details.append(save);
    } catch (error) {
      made.textContent = error.message;
    }
  });
  row.querySelector(".payload").append(details);
}

// A payload that is longer than its place is scrolled, by a keyboard, too.
function makeReachable(payload) {
  if (payload.scrollHeight > payload.clientHeight) {
    payload.tabIndex = 0;
  } else {
    payload.removeAttribute("tabindex");
  }
}

function makeAllReachable() {
  document.querySelectorAll(".payload > div").forEach(makeReachable);
}

function addMessage(table, message) {
  const row = table.tBodies[0].insertRow();
  const position = exact(message.position);
  row.dataset.position = position;
  const link = document.createElement("a");
  link.href = table.dataset.view + position;
  showNumber(link, position);
  cell(row, "number", "Position", "").append(link);
  // As formats.py has it.
  cell(row, "number", "Recorded", message.recorded_time === null ? "" : `${message.recorded_time.slice(0, 19).replace("T", " ")}Z`);
  showNumber(cell(row, "number", "Length", ""), message.length);
  const shown = document.createElement("div");
  const most = Number(table.dataset.max);
  const fields = message.fields ? JSON.stringify(message.fields, null, 1).replace(/\n */g, " ") : "";
  shown.textContent = fields ? printable(fields.slice(0, most)) + (fields.length > most ? "…" : "") : printable(message.payload) + (message.is_whole ? "" : "…");
  cell(row, "payload", "Payload", "").append(shown);
  makeReachable(shown);
  addBytes(table, row);
}

const FOLLOW_MS = 1000;
const FOLLOWED = 50;
const MAX_FOLLOWED = 500;

// New messages are added each second, the newest of them; a button pauses that.
function follow(table) {
  const button = document.getElementById("follow");
  const status = document.getElementById("following");
  const log = table.closest(".log");
  let position = exact(table.dataset.follow);
  let paused = false;
  let read = performance.now();

  function say(text) {
    if (!paused) {  // by a click while a response was awaited
      status.textContent = text;
    }
  }

  async function step() {
    const parameters = { position, last: FOLLOWED, format: table.dataset.format, max_payload: table.dataset.max };
    const found = await get(messagesUrl(table, table.dataset.schema ? { ...parameters, schema: table.dataset.schema } : parameters));
    if (paused) {
      return true;
    }
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const skipped = found.length === FOLLOWED ? exact(found[0].position) - position : 0n;
    if (skipped > 0n) {
      const row = table.tBodies[0].insertRow();
      row.className = "gap";
      row.insertCell().colSpan = 4;
      row.cells[0].textContent = `${size(Number(skipped))} are not shown`;
    }
    for (const message of found) {
      addMessage(table, message);
    }
    while (table.tBodies[0].rows.length > MAX_FOLLOWED) {
      table.tBodies[0].deleteRow(0);
    }
    const recording = await get(table.dataset.messages);
    if (recording.recorded_position !== null) {
      showNumber(document.getElementById("end"), exact(recording.recorded_position));
    }
    document.getElementById("recorded").textContent = size(recording.recorded_bytes);
    document.getElementById("state").textContent = recording.live ? "in progress" : "stopped";
    const now = performance.now();
    if (found.length > 0) {
      const end = exact(found.at(-1).end_position);
      say(`${size((Number(end - position) * 1000) / (now - read))}/s; of each second the newest ${FOLLOWED} messages`);
      position = end;
    } else {
      if (!recording.live && position >= exact(recording.recorded_position ?? 0)) {
        status.textContent = "The recording is stopped.";
        button.hidden = true;
        return false;
      }
      say("no new message");
    }
    read = now;
    if (isAtEnd) {
      log.scrollTop = log.scrollHeight;
    }
    return true;
  }

  async function run() {
    let goesOn = true;
    try {
      if (!paused && !document.hidden) {
        goesOn = await step();
      }
    } catch (error) {
      goesOn = !error.isFinal;  // a refusal stays one, and a browser would ask for a user each second
      status.textContent = `${error.message}; ${goesOn ? "trying again" : "reload the page"}`;
      button.hidden = !goesOn;
    }
    if (goesOn) {
      setTimeout(run, FOLLOW_MS);
    }
  }

  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Follow" : "Pause";
    button.setAttribute("aria-pressed", String(!paused));
    status.textContent = paused ? "paused" : "";
  });
  log.scrollTop = log.scrollHeight;
  setTimeout(run, FOLLOW_MS);
}

const ACTIONS = {
  stop: { method: "POST", title: "Stop the recording" },
  truncate: { method: "POST", title: "Truncate the recording: delete what begins at a position or later" },
  purge: { method: "POST", title: "Purge segment files: delete what precedes a position" },
  delete: { method: "DELETE", title: "Delete the recording" },
  accept: { method: "POST", title: "Accept the damage of the recording" },
};

// Changes of a recording: what cannot be undone says what it does, and is confirmed with the recording's id.
function offerActions(place) {
  const dialog = place.nextElementSibling;
  const { position, confirmation } = dialog.querySelector("form").elements;
  const plan = dialog.querySelector("[data-plan]");
  const go = dialog.querySelector("[value=go]");
  const output = place.querySelector("output");
  let action = "";
  let planned = false;
  let asked = 0;

  function allow() {
    go.disabled = !planned || confirmation.value.trim() !== place.dataset.id;
  }

  const takesPosition = () => action === "truncate" || action === "purge";

  async function plannedChange() {
    if (action === "accept") {
      const { notes } = await get(`${place.dataset.actions}/damage`);
      const open = notes.filter((note) => note.accepted_timestamp_ms < 0);
      const found = open.map((note) => `${note.outcome}: ${note.detail}`).join("; ");
      return [open.length > 0, found === "" ? "There is no damage to accept." : `This accepts: ${found}. The recording is not suspect any more. These notes stay, and no data is changed; copies of removed data stay in the directory, too.`];
    }
    const query = { action, ...(takesPosition() ? { position: position.value.trim() } : {}) };
    const removal = await get(`${place.dataset.actions}/removal?${new URLSearchParams(query)}`);
    return [true, `This deletes ${size(removal.bytes)} (${spaced(removal.bytes)} bytes) and ${spaced(removal.segments)} segment file${removal.segments === 1 ? "" : "s"}. It cannot be undone.`];
  }

  async function showPlan() {
    const number = (asked += 1);
    planned = false;
    allow();
    plan.textContent = "";
    if (takesPosition() && position.value.trim() === "") {
      return;
    }
    let found = "";
    let isPlanned = false;
    try {
      [isPlanned, found] = await plannedChange();
    } catch (error) {
      found = error.message;
    }
    if (number === asked) {
      plan.textContent = found;
      planned = isPlanned;
      allow();
    }
  }

  async function send() {
    const { method } = ACTIONS[action];
    const path = { delete: "", accept: "/accept-damage" }[action] ?? `/${action}`;
    const query = takesPosition() ? `?${new URLSearchParams({ position: position.value.trim() })}` : "";
    const response = await fetch(`${place.dataset.actions}${path}${query}`, { method });
    const body = await response.json();
    if (!response.ok) {
      output.className = "failed";
      output.textContent = body.detail;
    } else if (action === "delete") {
      location.assign(`${ROOT}/recordings`);
    } else {
      // The end of a recording is in the archive's files a moment later.
      for (let looks = 0; action === "stop" && looks < 20 && (await get(place.dataset.actions)).live; looks += 1) {
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
      location.reload();
    }
  }

  for (const button of place.querySelectorAll("[data-action]")) {
    button.addEventListener("click", () => {
      action = button.dataset.action;
      if (action === "stop") {
        send();
        return;
      }
      dialog.querySelector("h2").textContent = ACTIONS[action].title;
      dialog.querySelector(".position").hidden = !takesPosition();
      position.value = "";
      confirmation.value = "";
      showPlan();
      dialog.showModal();
    });
  }
  position.addEventListener("input", showPlan);
  confirmation.addEventListener("input", allow);
  confirmDialog(dialog, go, send);
}

// What the retention policy would delete: deleted after the number of files is entered.
function offerRetention(place) {
  const dialog = place.nextElementSibling;
  const { confirmation } = dialog.querySelector("form").elements;
  const go = dialog.querySelector("[value=go]");
  const output = place.querySelector("output");

  async function send() {
    output.className = "";
    output.textContent = "deleting…";
    const response = await fetch(place.dataset.retention, { method: "POST" });
    const body = await response.json();
    const failed = (body.removals ?? []).filter((each) => each.problem !== "");
    if (response.ok && failed.length === 0 && body.changed.length === 0 && body.left === 0) {
      location.reload();
      return;
    }
    output.className = "failed";
    output.textContent = response.ok
      ? [
        ...failed.map((each) => `recording ${each.recording_id}: ${each.problem}`),
        ...(body.changed.length > 0 ? [`left out because they have changed: recordings ${body.changed.join(", ")}`] : []),
        ...(body.left > 0 ? [`${body.left} recordings are left: reload the page, and go on`] : []),
      ].join("; ")
      : body.detail;
  }

  place.querySelector("button").addEventListener("click", () => {
    confirmation.value = "";
    go.disabled = true;
    dialog.showModal();
  });
  confirmation.addEventListener("input", () => {
    go.disabled = confirmation.value.trim() !== confirmation.dataset.wanted;
  });
  confirmDialog(dialog, go, send);
}

// Calls `send` once the dialog was confirmed, by its button and not by Enter while that is disabled.
function confirmDialog(dialog, go, send) {
  dialog.querySelector("form").addEventListener("submit", (event) => {
    if (event.submitter?.value !== "cancel" && go.disabled) {
      event.preventDefault();
    }
  });
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "go" && !go.disabled) {
      send();
    }
    dialog.returnValue = "";
  });
}

const AGAIN_MS = 2000;

// Parts of the page that are read again; what is the same stays, with what is selected in it.
function readAgain(parts) {
  const stale = document.getElementById("stale");

  function renew(old, made) {
    if (old.tBodies === undefined) {
      if (old.innerHTML !== made.innerHTML) {
        old.replaceChildren(...made.childNodes);
      }
      return;
    }
    const body = old.tBodies[0];
    const rows = [...made.tBodies[0].rows];
    rows.forEach((row, index) => {
      const now = body.rows[index];
      if (now === undefined) {
        body.append(row);
      } else if (now.outerHTML !== row.outerHTML) {
        now.replaceWith(row);
      }
    });
    while (body.rows.length > rows.length) {
      body.deleteRow(-1);
    }
  }

  async function run() {
    let goesOn = true;
    try {
      if (!document.hidden) {
        const response = await fetch(location.href);
        goesOn = response.ok || response.status >= 500;
        if (!response.ok) {
          throw new Error(`the service responds ${response.status}`);
        }
        const made = new DOMParser().parseFromString(await response.text(), "text/html");
        const found = [...made.querySelectorAll("[data-again]")];
        parts.forEach((old, index) => found[index] && renew(old, found[index]));
        stale.hidden = true;
      }
    } catch (error) {
      stale.textContent = `The figures have stopped: ${error.message}; ${goesOn ? "trying again" : "reload the page"}.`;
      stale.hidden = false;
    }
    if (goesOn) {
      setTimeout(run, AGAIN_MS);
    }
  }

  if (parts.length > 0) {
    setTimeout(run, AGAIN_MS);
  }
}

const MAX_FOUND = 200;

// A search goes on, a part at a time, until enough is found, all is searched, or a button stops it.
function search(table) {
  const button = document.getElementById("search");
  const status = document.getElementById("searched");
  const { text, format, schema, max, before } = table.dataset;
  const from = Number(table.dataset.from);
  let position = Number(table.dataset.search);
  let end = Number(table.dataset.end);
  let found = table.tBodies[0].rows.length;
  let limit = Math.max(found, 50);
  let stop = null;

  function show(note) {
    status.textContent = `${size(position - from)} of ${size(end - from)} searched, ${spaced(found)} found${note}`;
    button.hidden = position >= end;
    button.textContent = stop === null ? "Go on" : "Stop";
  }

  async function run() {
    stop = new AbortController();
    let note = "";
    try {
      while (position < end && found < limit) {
        show("");
        const parameters = { text, position, format, max_payload: max, limit: limit - found, ...(schema ? { schema } : {}), ...(before ? { to_position: before } : {}) };
        const part = await get(`${table.dataset.messages}/search?${new URLSearchParams(parameters)}`, stop.signal);
        for (const message of part.messages) {
          addMessage(table, message);
        }
        found += part.messages.length;
        position = part.to_position;
        end = part.end_position;
      }
    } catch (error) {
      note = error.name === "AbortError" ? "; stopped" : `; ${error.message}`;
    }
    stop = null;
    show(note);
  }

  button.addEventListener("click", () => {
    if (stop !== null) {
      stop.abort();
    } else {
      limit = found + MAX_FOUND;
      run();
    }
  });
  run();
}

async function send(event) {
  event.preventDefault();
  const form = event.target;
  let path = ROOT + form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input, select")) {
    if (input.dataset.in === "path") {
      path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    } else if (input.value !== "") {
      query.set(input.name, input.value);
    }
  }
  const url = query.size === 0 ? path : `${path}?${query}`;
  const method = form.dataset.method;
  if (form.dataset.confirm !== undefined && prompt(`${method} ${url}\nThis changes the archive. Type ${method} to send it.`) !== method) {
    form.nextElementSibling.textContent = "not sent";
    return;
  }
  const response = await fetch(url, { method });
  const body = await response.text();  // as it is: JavaScript's numbers have 53 bits
  const limit = 100000;
  form.nextElementSibling.textContent = `${method} ${url}\n${response.status}\n\n${body.slice(0, limit)}${body.length > limit ? "…" : ""}`;
}

for (const table of document.querySelectorAll("table[data-live]")) {
  showLive(table);
}
for (const place of document.querySelectorAll("[data-actions]")) {
  offerActions(place);
}
for (const place of document.querySelectorAll("[data-retention]")) {
  offerRetention(place);
}
readAgain(document.querySelectorAll("[data-again]"));
for (const place of document.querySelectorAll("[data-trend]")) {
  showTrend(place);
}
for (const place of document.querySelectorAll("[data-rates]")) {
  showRates(place);
}
for (const place of document.querySelectorAll("[data-statistics]")) {
  showStatistics(place);
}
for (const table of document.querySelectorAll("table[data-messages]")) {
  for (const row of table.tBodies[0].rows) {
    addBytes(table, row);
  }
  if (table.dataset.search !== undefined) {
    search(table);
  }
  if (table.dataset.follow !== undefined) {
    follow(table);
  }
}
makeAllReachable();
addEventListener("resize", makeAllReachable);
for (const form of document.querySelectorAll("form[data-path]")) {
  form.addEventListener("submit", send);
}
