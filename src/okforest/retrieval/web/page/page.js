"use strict";
// The page of an image search: a query (a file, or an image of the index), a part of it, the hits.

const $ = (id) => document.getElementById(id);
const COLORS = ["#ffd166", "#00b4ff", "#f72585", "#3ddc84", "#ff5400", "#9d4edd", "#ffffff", "#1d3fff"];
const MOST_UPLOADS = 20; // that the back button returns to
const STEP = 0.05; // of a side, for the arrow keys

const state = {
  query: null, // {file, url} or {image, url}, and the name, height and width; hidden if no picture
  uploads: new Map(), // queries of this visit, by the number in the address
  maxBytes: Infinity, // of an upload
  box: null, // the part, as fractions: left, top, width, height
  searched: null, // the part that the hits are for
  turn: 0, // number of the latest request: answers to earlier ones are dropped
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
  const parameters = new URLSearchParams({ k: $("top").value });
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
    const only = label ? ` with the label “${label}”` : "";
    $("status").textContent =
      `${number}${only} in ${answer.milliseconds.toFixed(1)} ms on the server, ${spent} ms in all`;
  } catch (error) {
    if (turn !== state.turn) return;
    showHits([]);
    $("status").textContent = "No hits.";
    showError(error.message);
  } finally {
    if (turn === state.turn) $("hits").classList.remove("waiting");
  }
}

function showError(message) {
  $("error").textContent = message;
  $("error").hidden = false;
}

function setQuery(query) {
  Object.assign(state, { query, box: null, searched: null });
  $("picture").src = query.url;
  $("query").hidden = false;
  showQuery();
  window.scrollTo(0, 0); // the click may have been far below
  search();
}

function takeFile(file) {
  if (!file) return;
  const name = file.name || "pasted picture";
  if (file.size === 0) return showError(`${name} is empty.`);
  if (file.size > state.maxBytes) {
    const limit = Number((state.maxBytes / 2 ** 20).toPrecision(3));
    return showError(`${name} is larger than ${limit} MB, the limit of this server.`);
  }
  const query = { file, url: URL.createObjectURL(file), name };
  const number = Math.round(performance.timeOrigin + performance.now());
  state.uploads.set(number, query);
  if (state.uploads.size > MOST_UPLOADS) {
    const [oldest, { url }] = state.uploads.entries().next().value;
    URL.revokeObjectURL(url);
    state.uploads.delete(oldest);
  }
  history.pushState(null, "", `#upload=${number}`);
  setQuery(query);
}

function takeHash() {
  const [, kind, text] = /^#(image|upload)=(\d+)$/.exec(location.hash) ?? [];
  const number = Number(text);
  if (kind === "image") {
    setQuery({ image: number, url: `/api/images/${number}/thumbnail`, name: `image ${number}` });
  } else if (kind === "upload" && state.uploads.has(number)) {
    setQuery(state.uploads.get(number));
  } else if (location.hash !== "#hits" || !state.query) { // not the link that skips to the hits
    showStart();
  }
}

// Without a query: images of the index to begin with.
async function showStart() {
  const turn = ++state.turn;
  Object.assign(state, { query: null, box: null, searched: null });
  $("query").hidden = true;
  $("error").hidden = true;
  $("hits").classList.remove("waiting");
  try {
    const { images } = await request("GET", "/api/images?k=24");
    if (turn !== state.turn) return;
    $("hits").replaceChildren(...images.map((image) => card(image)));
    $("status").textContent = images.length
      ? "Images of this index: click one to search for it, or choose a picture of yours."
      : "This index has no images yet.";
  } catch (error) {
    if (turn !== state.turn) return;
    $("hits").replaceChildren();
    showError(error.message);
  }
}

// The query and its part

function showQuery() {
  const { query, box, searched } = state;
  const size = query.width ? `, ${query.width} × ${query.height}` : "";
  const hidden = query.hidden ? " (the browser cannot show it)" : "";
  $("caption").textContent = `${query.name}${size}${searched ? " (a part)" : ""}${hidden}`;
  for (const id of ["frame", "buttons", "hint"]) $(id).hidden = Boolean(query.hidden);
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

// An image to click, with its name and label, and with more below them.
function card(image, spoken = "", more = []) {
  const picture = element("img", {
    src: `/api/images/${image.id}/thumbnail`, alt: "", loading: "lazy", decoding: "async",
  });
  const again = element("button", { type: "button", className: "again", title: "Search for this image" }, [picture]);
  again.setAttribute("aria-label", `Search for ${image.name}${spoken}`);
  again.addEventListener("click", () => {
    if (location.hash === `#image=${image.id}`) takeHash();
    else location.hash = `image=${image.id}`;
  });
  return element("li", { className: "hit" }, [again, element("div", { className: "text" }, [
    element("div", { className: "name", textContent: image.name.split("/").pop(), title: image.name }),
    element("div", { className: "meta", textContent: image.label || "\u00a0" }),
    ...more,
  ])]);
}

function showHits(hits) {
  const best = hits.length ? hits[0].score : 1;
  $("hits").replaceChildren(...hits.map((hit) => {
    const score = hit.score.toFixed(4);
    const why = element("button", { type: "button", className: "why", textContent: "Why?" });
    why.setAttribute("aria-label", `Why ${hit.name}? Show the parts that match`);
    why.addEventListener("click", () => explain(hit));
    const bar = element("div");
    bar.style.width = `${100 * hit.score / best}%`;
    return card(hit, `, score ${score}`, [
      element("div", { className: "meter" }, [bar]),
      element("div", { className: "foot" }, [element("span", { className: "meta score", textContent: score }), why]),
    ]);
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
  const times = {};
  svg.replaceChildren(
    svgElement("image", { href: url, width, height, preserveAspectRatio: "none" }),
    ...boxes.map(([row, col, side], k) => {
      const rect = svgElement("rect", {
        x: col + view.left, y: row + view.top, width: side, height: side,
        fill: "none", stroke: COLORS[k % COLORS.length], "stroke-width": line,
      });
      // A box on the place of others is dashed, so that all of their colours are seen.
      const before = times[[row, col, side]] ?? 0;
      times[[row, col, side]] = before + 1;
      const dash = 10 * line / 2 ** before;
      if (before) rect.setAttribute("stroke-dasharray", `${dash} ${10 * line - dash}`);
      return rect;
    }),
  );
}

async function explain(hit) {
  const { query, searched } = state;
  $("why-name").textContent = hit.label ? `${hit.name} (${hit.label})` : hit.name;
  $("why-status").textContent = "Comparing…";
  const part = searched
    ? { left: Math.round(searched.left * query.width), top: Math.round(searched.top * query.height),
      width: searched.width * query.width, height: searched.height * query.height }
    : { left: 0, top: 0, width: query.width, height: query.height };
  const drawBoth = (shown) => {
    drawBoxes($("why-query"), query.url, query, part, shown.map((match) => match.query));
    drawBoxes($("why-hit"), `/api/images/${hit.id}/thumbnail`, hit,
      { left: 0, top: 0, width: hit.width, height: hit.height }, shown.map((match) => match.hit));
  };
  drawBoth([]); // an image whose pixels are not kept has no boxes
  $("slide").hidden = true;
  $("why").showModal();
  try {
    const answer = await ask(`explain/${hit.id}`, "k=20", query, searched);
    const draw = () => {
      const shown = answer.matches.slice(0, Number($("pairs").value));
      $("n-pairs").textContent = shown.length;
      drawBoth(shown);
      const share = shown.reduce((sum, match) => sum + match.weight, 0) / answer.score;
      $("why-status").textContent = answer.matches.length
        ? `Boxes of the same colour ended in the same leaves. The pairs shown make up ${(100 * share).toFixed(1)} % of the score, ${answer.score.toFixed(4)}.`
        : "No subwindows match.";
    };
    $("slide").hidden = false;
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
    if (!state.query) return;
    state.query.hidden = true;
    showQuery();
  });
  $("frame").addEventListener("pointerdown", startDrag);
  $("frame").addEventListener("keydown", keyInFrame);
  $("part").addEventListener("click", search);
  $("whole").addEventListener("click", wholePicture);
  $("label").addEventListener("change", search);
  $("top").addEventListener("change", search);
  $("close").addEventListener("click", () => $("why").close());
  $("why").addEventListener("click", (event) => { if (event.target === $("why")) $("why").close(); });
  history.scrollRestoration = "manual";
  window.addEventListener("hashchange", takeHash);
  try {
    const info = await request("GET", "/api/info");
    $("about").textContent = `${info.images.toLocaleString()} images, ` +
      `${info.subwindows.toLocaleString()} subwindows, ${info.trees} trees`;
    for (const label of info.labels) $("label").append(element("option", { value: label, textContent: label }));
    $("label").disabled = info.labels.length === 0;
    state.maxBytes = info.max_bytes;
  } catch (error) {
    showError(error.message);
  }
  takeHash();
}

start();
