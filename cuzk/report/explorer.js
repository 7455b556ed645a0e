// Pick a value for every axis but the one that is drawn; curves of throughput and memory follow, coloured by verdict.
"use strict";
const axes = Object.keys(DATA.axes), at = {}, column = {};
DATA.kept.forEach((name, i) => { column[name] = axes.length + i; });
const colour = { fits: "#1d7a55", risky: "#a86a00", oom: "#b3261e", invalid: "#9aa3ad" };
const GIB = 2 ** 30, $ = (id) => document.getElementById(id);
const value = (row, name) => row[column[name]];
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[c]));
let drawn = axes.reduce((best, key) => (DATA.axes[key].length > DATA.axes[best].length ? key : best), axes[0]);

const fitting = DATA.rows.filter((row) => ["fits", "risky"].includes(value(row, "verdict")) && value(row, "s_per_proof") !== null)
  .sort((a, b) => value(a, "s_per_proof") - value(b, "s_per_proof") || value(a, "peak_ram_bytes") - value(b, "peak_ram_bytes"));
axes.forEach((key, i) => { at[key] = fitting.length ? fitting[0][i] : DATA.axes[key][0]; });

function picks() {
  const across = axes.map((key) => `<option ${key === drawn ? "selected" : ""}>${escaped(key)}</option>`).join("");
  $("picks").innerHTML = `<label>across <select id="across">${across}</select></label>` + axes.map((key, i) =>
    `<label>${escaped(key)} <select data-axis="${i}">` + DATA.axes[key].map((v) =>
      `<option ${v === at[key] ? "selected" : ""}>${escaped(v)}</option>`).join("") + "</select></label>").join("");
  $("across").onchange = (event) => { drawn = event.target.value; show(); };
  document.querySelectorAll("select[data-axis]").forEach((select) => {
    select.onchange = () => { at[axes[select.dataset.axis]] = select.value; show(); };
  });
}

function line() {
  return DATA.axes[drawn].map((v) => DATA.rows.find((row) =>
    axes.every((key, i) => row[i] === (key === drawn ? v : at[key])))).filter(Boolean);
}

function chart(title, rows, levels, limit) {
  const W = 720, H = 260, left = 64, bottom = 34, top = 26, place = axes.indexOf(drawn);
  const known = rows.flatMap((row) => levels.map((l) => l.of(row))).concat(rows.map(limit)).filter((v) => v !== null && v !== undefined);
  if (!known.length) return "";
  const most = Math.max(...known) * 1.08 || 1;
  const x = (i) => left + (rows.length < 2 ? 0.5 : i / (rows.length - 1)) * (W - left - 16);
  const y = (v) => H - bottom - (v / most) * (H - bottom - top);
  let svg = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escaped(title)}"><text x="${left}" y="14">${escaped(title)}</text>`;
  for (let k = 0; k <= 4; k++) {
    const v = (most * k) / 4;
    svg += `<line x1="${left}" x2="${W - 16}" y1="${y(v)}" y2="${y(v)}" stroke="#e3e7eb"/>` +
      `<text x="${left - 6}" y="${y(v) + 4}" text-anchor="end">${v >= 100 ? v.toFixed(0) : v.toFixed(1)}</text>`;
  }
  const points = (of) => rows.map((row, i) => [x(i), of(row)]).filter((p) => p[1] !== null && p[1] !== undefined);
  const low = levels.find((l) => l.band === "low"), high = levels.find((l) => l.band === "high");
  if (low && high) {
    const area = points(high.of).map((p) => `${p[0]},${y(p[1])}`).concat(points(low.of).reverse().map((p) => `${p[0]},${y(p[1])}`));
    svg += `<polygon points="${area.join(" ")}" fill="#4878a8" opacity="0.15"/>`;
  }
  const ends = points(limit);
  if (ends.length) svg += `<polyline points="${ends.map((p) => `${p[0]},${y(p[1])}`).join(" ")}" fill="none" stroke="#555" stroke-dasharray="5 4"/>`;
  levels.filter((l) => !l.band).forEach((level) => {
    svg += `<polyline points="${points(level.of).map((p) => `${p[0]},${y(p[1])}`).join(" ")}" fill="none" stroke="#4878a8" stroke-width="1.5"/>`;
    rows.forEach((row, i) => {
      const v = level.of(row);
      if (v === null || v === undefined) return;
      const picked = row[place] === at[drawn];
      svg += `<circle cx="${x(i)}" cy="${y(v)}" r="${picked ? 6 : 4}" fill="${colour[value(row, "verdict")]}" ` +
        `stroke="${picked ? "#1c2733" : "none"}"><title>${escaped(drawn)}=${escaped(row[place])}: ${v.toFixed(2)}, ${value(row, "verdict")}</title></circle>`;
    });
  });
  const every = Math.ceil(rows.length / 16);
  rows.forEach((row, i) => {
    if (i % every === 0) svg += `<text x="${x(i)}" y="${H - 12}" text-anchor="middle">${escaped(row[place])}</text>`;
  });
  return svg + "</svg>";
}

function show() {
  picks();
  const rows = line(), gib = (name) => (row) => (value(row, name) === null ? null : value(row, name) / GIB);
  const now = rows.find((row) => row[axes.indexOf(drawn)] === at[drawn]);
  if (now) {
    const pace = value(now, "s_per_proof"), verdict = value(now, "verdict");
    const ram = value(now, "peak_ram_bytes") === null ? "" : `, RAM ${(value(now, "peak_ram_bytes") / GIB).toFixed(1)} of ${(value(now, "ram_limit_bytes") / GIB).toFixed(1)} GiB`;
    $("answer").className = `verdict ${verdict}`;
    $("answer").textContent = `${verdict.toUpperCase()}${pace === null || pace === undefined ? "" : `    ${pace.toFixed(2)} s/proof`}${ram}` +
      `${value(now, "oom_pool") ? `    ${value(now, "oom_pool")} runs out` : ""}${value(now, "error") ? `    ${value(now, "error")}` : ""}`;
    $("how").textContent = `${axes.map((key) => `--set ${key}=${at[key]}`).join(" ")}    ${value(now, "bottleneck") || ""}: ${value(now, "why") || ""}`;
  }
  $("charts").innerHTML = chart(`seconds a proof across ${drawn}`, rows, [
    { of: (row) => value(row, "s_per_proof") }, { band: "low", of: (row) => value(row, "s_per_proof_p5") },
    { band: "high", of: (row) => value(row, "s_per_proof_p95") }], () => null) +
    chart(`peak of RAM in GiB, limit dashed, across ${drawn}`, rows, [{ of: gib("peak_ram_bytes") }], gib("ram_limit_bytes")) +
    chart(`peak of the fullest GPU in GiB, limit dashed, across ${drawn}`, rows, [{ of: gib("peak_vram_bytes") }], gib("vram_limit_bytes"));
}

$("best").innerHTML = `<tr>${axes.map((key) => `<th>${escaped(key)}</th>`).join("")}<th>s/proof</th><th>RAM, GiB</th><th>VRAM, GiB</th><th>verdict</th><th class="l">binds</th></tr>` +
  fitting.slice(0, 25).map((row) => `<tr>${axes.map((_, i) => `<td>${escaped(row[i])}</td>`).join("")}<td>${value(row, "s_per_proof").toFixed(2)}</td>` +
    `<td>${(value(row, "peak_ram_bytes") / GIB).toFixed(1)}</td><td>${value(row, "peak_vram_bytes") === null ? "–" : (value(row, "peak_vram_bytes") / GIB).toFixed(1)}</td>` +
    `<td class="${value(row, "verdict")}">${value(row, "verdict")}</td><td class="l">${escaped(value(row, "bottleneck") || "")}</td></tr>`).join("");
show();
