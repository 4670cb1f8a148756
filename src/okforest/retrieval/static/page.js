"use strict";
// The page of an image search: a query (a file, or an image of the index), a part of it, the hits.

const $ = (id) => document.getElementById(id);
const COLORS = ["#ffd166", "#4cc9f0", "#f72585", "#80ed99", "#ff9f1c", "#c77dff", "#f94144", "#90e0ef"];
const STEP = 0.05; // of a side, for the arrow keys

const state = {
  query: null, // {file, url} or {image, url}, and the name, height and width
  box: null, // the part, as fractions: left, top, width, height
  searched: null, // the part that the hits are for
  turn: 0, // number of the latest search: answers to earlier ones are dropped
};

// Requests

async function request(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, { method, body });
  } catch {
    throw new Error("The server cannot be reached. Is it running?");
  }
  if (answer.ok) return answer.json();
  let reason = answer.statusText;
  try {
    const { detail } = await answer.json();
    reason = typeof detail === "string" ? detail : detail.map((one) => one.msg).join("; ");
  } catch { /* not JSON: the status must do */ }
  throw new Error(`${reason.charAt(0).toUpperCase()}${reason.slice(1)} (${answer.status})`);
}

// The part of the query in pixels, as the server takes it.
function boxParameter(box, query) {
  if (!box) return "";
  const pixels = [box.left * query.width, box.top * query.height,
    Math.max(2, box.width * query.width), Math.max(2, box.height * query.height)];
  return `&box=${pixels.map((x) => Math.round(x)).join(",")}`;
}

function ask(action, parameters, query, box) {
  const tail = `?${parameters}${boxParameter(box, query)}`;
  if (query.file) return request("POST", `/api/${action}${tail}`, query.file);
  const [verb, hit] = action.split("/");
  return request("GET", `/api/images/${query.image}/${verb}${hit ? `/${hit}` : ""}${tail}`);
}

// Searching

async function search() {
  const { query, box } = state;
  if (!query) return;
  const turn = ++state.turn;
  const label = $("label").value;
  const parameters = new URLSearchParams({ top: $("top").value });
  if (label) parameters.append("label", label);
  $("hits").classList.add("waiting");
  $("status").textContent = "Searching…";
  $("error").hidden = true;
  const start = performance.now();
  try {
    const answer = await ask("search", parameters, query, box);
    if (turn !== state.turn) return;
    if (!box) [query.height, query.width] = [answer.query_height, answer.query_width];
    state.searched = box;
    showQuery();
    showHits(answer.hits);
    const spent = Math.round(performance.now() - start);
    const number = answer.hits.length === 1 ? "1 hit" : `${answer.hits.length} hits`;
    $("status").textContent =
      `${number} in ${answer.milliseconds.toFixed(1)} ms on the server, ${spent} ms in all`;
  } catch (error) {
    if (turn !== state.turn) return;
    showHits([]);
    $("status").textContent = "No hits.";
    $("error").textContent = error.message;
    $("error").hidden = false;
  } finally {
    if (turn === state.turn) $("hits").classList.remove("waiting");
  }
}

function setQuery(query) {
  if (state.query?.file) URL.revokeObjectURL(state.query.url);
  Object.assign(state, { query, box: null, searched: null });
  $("picture").src = query.url;
  $("query").hidden = false;
  showQuery();
  search();
}

function takeFile(file) {
  if (!file) return;
  if (location.hash) history.pushState(null, "", location.pathname);
  setQuery({ file, url: URL.createObjectURL(file), name: file.name || "pasted picture" });
}

function takeHash() {
  const match = /^#image=(\d+)$/.exec(location.hash);
  if (!match) return;
  const image = Number(match[1]);
  setQuery({ image, url: `/api/images/${image}/thumbnail`, name: `image ${image}` });
}

// The query and its part

function showQuery() {
  const { query, box, searched } = state;
  const size = query.width ? `, ${query.width} × ${query.height}` : "";
  $("caption").textContent = `${query.name}${size}${searched ? " (a part)" : ""}`;
  $("part").disabled = !box || !query.width;
  $("whole").hidden = !box;
  $("box").hidden = !box;
  if (box) {
    for (const side of ["left", "top", "width", "height"]) {
      $("box").style[side] = `${100 * box[side]}%`;
    }
  }
}

function setBox(box) {
  state.box = box;
  showQuery();
}

function wholePicture() {
  const again = state.searched !== null;
  setBox(null);
  if (again) search();
}

const between = (x, low, high) => Math.min(Math.max(x, low), high);

function startDrag(event) {
  if (!state.query || event.button !== 0) return;
  const frame = $("frame");
  const area = frame.getBoundingClientRect();
  const place = (e) => [between((e.clientX - area.left) / area.width, 0, 1),
    between((e.clientY - area.top) / area.height, 0, 1)];
  const [x, y] = place(event);
  frame.setPointerCapture(event.pointerId);
  const move = (e) => {
    const [u, v] = place(e);
    const box = { left: Math.min(x, u), top: Math.min(y, v), width: Math.abs(u - x), height: Math.abs(v - y) };
    if (box.width > 0.02 && box.height > 0.02) setBox(box);
  };
  const stop = () => {
    frame.removeEventListener("pointermove", move);
    frame.removeEventListener("pointerup", stop);
    frame.removeEventListener("pointercancel", stop);
  };
  frame.addEventListener("pointermove", move);
  frame.addEventListener("pointerup", stop);
  frame.addEventListener("pointercancel", stop);
}

function keyInFrame(event) {
  const steps = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
  const step = steps[event.key];
  if (step) {
    const box = { ...(state.box ?? { left: 0.25, top: 0.25, width: 0.5, height: 0.5 }) };
    if (state.box && event.shiftKey) {
      box.width = between(box.width + step[0], STEP, 1 - box.left);
      box.height = between(box.height + step[1], STEP, 1 - box.top);
    } else if (state.box) {
      box.left = between(box.left + step[0], 0, 1 - box.width);
      box.top = between(box.top + step[1], 0, 1 - box.height);
    }
    setBox(box);
  } else if (event.key === "Enter" && state.box) {
    search();
  } else if (event.key === "Escape") {
    wholePicture();
  } else {
    return;
  }
  event.preventDefault();
}

// Hits

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function showHits(hits) {
  const best = hits.length ? hits[0].score : 1;
  $("hits").replaceChildren(...hits.map((hit) => {
    const picture = element("img", {
      src: `/api/images/${hit.id}/thumbnail`, alt: "", loading: "lazy", decoding: "async",
    });
    const again = element("button", { type: "button", className: "again", title: "Search for this image" }, [picture]);
    again.setAttribute("aria-label", `Search for ${hit.name}, score ${hit.score.toFixed(4)}`);
    again.addEventListener("click", () => { location.hash = `image=${hit.id}`; });
    const why = element("button", { type: "button", className: "why", textContent: "Why?" });
    why.setAttribute("aria-label", `Why ${hit.name}? Show the parts that match`);
    why.addEventListener("click", () => explain(hit));
    const bar = element("div");
    bar.style.width = `${100 * hit.score / best}%`;
    return element("li", { className: "hit" }, [again, element("div", { className: "text" }, [
      element("div", { className: "name", textContent: hit.name.split("/").pop(), title: hit.name }),
      element("div", { className: "meta", textContent: hit.label || "\u00a0" }),
      element("div", { className: "meter" }, [bar]),
      element("div", { className: "foot" }, [
        element("span", { className: "meta score", textContent: hit.score.toFixed(4) }), why,
      ]),
    ])]);
  }));
}

// Matching parts

const SVG = "http://www.w3.org/2000/svg";

function svgElement(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawBoxes(svg, url, { width, height }, view, boxes) {
  svg.setAttribute("viewBox", `${view.left} ${view.top} ${view.width} ${view.height}`);
  const line = Math.max(view.width, view.height) / 160;
  svg.replaceChildren(
    svgElement("image", { href: url, width, height, preserveAspectRatio: "none" }),
    ...boxes.map(([row, col, side], k) => svgElement("rect", {
      x: col + view.left, y: row + view.top, width: side, height: side,
      fill: "none", stroke: COLORS[k % COLORS.length], "stroke-width": line,
    })),
  );
}

async function explain(hit) {
  const { query, searched } = state;
  $("why-name").textContent = hit.label ? `${hit.name} (${hit.label})` : hit.name;
  $("why-status").textContent = "Comparing…";
  for (const id of ["why-query", "why-hit"]) $(id).replaceChildren();
  $("why").showModal();
  try {
    const answer = await ask(`explain/${hit.id}`, "top=20", query, searched);
    const part = searched
      ? { left: Math.round(searched.left * query.width), top: Math.round(searched.top * query.height),
        width: searched.width * query.width, height: searched.height * query.height }
      : { left: 0, top: 0, width: query.width, height: query.height };
    const draw = () => {
      const shown = answer.matches.slice(0, Number($("pairs").value));
      $("n-pairs").textContent = shown.length;
      drawBoxes($("why-query"), query.url, query, part, shown.map((match) => match.query));
      drawBoxes($("why-hit"), `/api/images/${hit.id}/thumbnail`, hit,
        { left: 0, top: 0, width: hit.width, height: hit.height }, shown.map((match) => match.hit));
      const share = shown.reduce((sum, match) => sum + match.weight, 0) / answer.score;
      $("why-status").textContent = answer.matches.length
        ? `Boxes of the same colour ended in the same leaves. The pairs shown make up ${(100 * share).toFixed(1)} % of the score, ${answer.score.toFixed(4)}.`
        : "No subwindows match.";
    };
    $("pairs").max = Math.max(1, answer.matches.length);
    $("pairs").oninput = draw;
    draw();
  } catch (error) {
    $("why-status").textContent = error.message;
  }
}

// The page

async function start() {
  $("file").addEventListener("change", (event) => {
    takeFile(event.target.files[0]);
    event.target.value = ""; // so that the same file can be chosen again
  });
  document.addEventListener("paste", (event) => {
    takeFile([...event.clipboardData.files].find((file) => file.type.startsWith("image/")));
  });
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) $("drop").classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop").classList.remove("over");
    takeFile(event.dataTransfer.files[0]);
  });
  $("picture").addEventListener("error", () => {
    $("caption").textContent = `${state.query.name} (the browser cannot show this format)`;
  });
  $("frame").addEventListener("pointerdown", startDrag);
  $("frame").addEventListener("keydown", keyInFrame);
  $("part").addEventListener("click", search);
  $("whole").addEventListener("click", wholePicture);
  $("label").addEventListener("change", search);
  $("top").addEventListener("change", search);
  $("close").addEventListener("click", () => $("why").close());
  $("why").addEventListener("click", (event) => { if (event.target === $("why")) $("why").close(); });
  window.addEventListener("hashchange", takeHash);
  try {
    const info = await request("GET", "/api/info");
    $("about").textContent = `${info.images.toLocaleString()} images, ` +
      `${info.subwindows.toLocaleString()} subwindows, ${info.trees} trees`;
    for (const label of info.labels) $("label").append(element("option", { value: label, textContent: label }));
    $("label").disabled = info.labels.length === 0;
  } catch (error) {
    $("error").textContent = error.message;
    $("error").hidden = false;
  }
  takeHash();
}

start();
