// Comparison behaviour: keys, linked scrolling, lease clock, active time, drafts, safe submission.
// Every form here also works by plain POST; all texts come from data-t-* attributes of [data-vote].
"use strict";

(() => {
  const IDLE_MS = 60_000, AWAY_MS = 300_000, BEAT_MS = 60_000, KEEP_MS = 2_000, RETRY_S = [1, 2, 4, 8, 15, 30];
  const DRAFT = "palate:draft:", DRAFT_DAYS = 7;
  // On a touch screen or in a narrow window the focus would scroll past the answers.
  const KEYBOARD = matchMedia("(hover: hover) and (min-width: 60rem)").matches;
  const DEFAULT_KEYS = { verdicts: "v", reasons: "r", undo: "u", skip: "s", diff: "d", guide: "g", flag: "f", help: "?" };
  const DIRECTIONS = { ArrowLeft: "left", ArrowDown: "tie", ArrowRight: "right", ArrowUp: "both_bad" };

  let root = null;          // the [data-vote] element in place
  let keys = new Map();     // key -> action
  let sending = false;
  let activeMs = 0, lastTick = Date.now(), lastActivity = Date.now();
  let deadline = 0, lastBeat = 0, warned = "", keepTimer = 0;
  const echo = new WeakSet();

  const $ = (selector, from = root) => from && from.querySelector(selector);
  const $$ = (selector, from = root) => (from ? [...from.querySelectorAll(selector)] : []);
  const text = (name) => root.getAttribute("data-t-" + name) || "";
  const form = () => $("[data-vote-form]");
  const rows = () => $$(".verdict");
  const chosen = (row) => $(".choices:not(.strengths) input:checked", row);
  const strengths = (row) => $$(".strengths input", row);
  const token = () => root.dataset.token;
  const csrf = () => ($("[name=csrfmiddlewaretoken]") || {}).value || "";

  // ---------------------------------------------------------------- start, and again after each swap
  function start({ focus }) {
    root = document.querySelector("[data-vote]");
    document.body.classList.toggle("page-vote", Boolean(root));
    if (!root) return focus ? void document.querySelector("#vote [data-go-on]")?.focus() : undefined;
    keys = readKeys(root.dataset.keys);
    activeMs = Number(form().elements.active_ms.value) || 0;
    lastTick = lastActivity = lastBeat = Date.now();
    warned = "";
    setLease(root.dataset.expiresIn);
    restoreDraft();
    tick();
    if (focus) focusRow(rows()[0]);
    if (root.dataset.prefetchUrl) setTimeout(prefetch, 800, token());
  }

  function readKeys(json) {
    let wanted = DEFAULT_KEYS;
    try { if (json) wanted = JSON.parse(json); } catch { /* keep the defaults */ }
    const map = new Map();
    // What was not chosen keeps its default; {} switches all letters off. The first of two equal keys holds.
    const all = wanted && Object.keys(wanted).length ? { ...wanted, ...missing(wanted) } : {};
    for (const [action, key] of Object.entries(all)) {
      const usable = typeof key === "string" && [...key].length === 1 && key !== " ";
      if (usable && !map.has(key.toLowerCase())) map.set(key.toLowerCase(), action);
    }
    const shown = new Map([...map].map(([key, action]) => [action, key.toUpperCase()]));
    for (const cap of $$("[data-key-for]")) {
      cap.hidden = !shown.has(cap.dataset.keyFor);
      cap.textContent = shown.get(cap.dataset.keyFor) || "";
    }
    return map;
  }

  const missing = (wanted) => Object.fromEntries(Object.entries(DEFAULT_KEYS).filter(([name]) => !(name in wanted)));

  function say(message, action) {
    const place = $("[data-status]");
    place.textContent = message;
    if (!action) return;
    const link = document.createElement("a");
    link.href = action.href;
    link.textContent = action.label;
    place.append(" ", link);
  }

  // ---------------------------------------------------------------- keys
  function typing(el) {
    if (el.isContentEditable || el.matches("textarea, select")) return true;
    return el.matches("input") && !["radio", "checkbox", "submit", "button"].includes(el.type);
  }

  function onKey(event) {
    if (!root || event.isComposing || event.keyCode === 229) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const el = event.target;
    if (!(el instanceof Element) || typing(el) || document.querySelector("dialog[open]")) return;
    const row = el.closest(".verdict") || openRow(event, el);
    if (row && event.key in DIRECTIONS) return take(event, () => point(row, DIRECTIONS[event.key]));
    if (row && strengths(row).length && /^[1-3]$/.test(event.key)) return take(event, () => setStrength(row, event.key, true));
    if (event.key === "Enter") return onEnter(event, el);
    if (event.key === "Escape") return closeBox(el);
    if (["PageUp", "PageDown", "Home", "End"].includes(event.key)) return scrollAnswers(event, el);
    const action = keys.get(event.key.toLowerCase());
    if (action) take(event, () => ACTIONS[action] && ACTIONS[action]());
  }

  // In a narrow window no row has the focus at first; up and down scroll there.
  function openRow(event, el) {
    if (el !== document.body || !["ArrowLeft", "ArrowRight"].includes(event.key)) return null;
    return rows().find((row) => !chosen(row)) || null;
  }

  function take(event, run) {
    event.preventDefault();
    if (!event.repeat) run();
  }

  function onEnter(event, el) {
    if (event.repeat) return event.preventDefault();
    if (el.closest("a, button, summary, [data-skip-form]")) return;
    const flag = el.closest("[data-flag]");
    take(event, () => form().requestSubmit(flag ? $("[data-flag-send]", flag) : undefined));
  }

  const ACTIONS = {
    verdicts: () => focusRow(rows()[0]),
    reasons: () => openBox("[data-reasons]"),
    undo: () => { const f = $("[data-undo-form]"); if (f) f.requestSubmit(); },
    skip: () => openBox("[data-skip]"),
    flag: () => openBox("[data-flag]"),
    guide: openGuide,
    diff: toggleDiff,
    help: openHelp,
  };

  // Where strength is asked the arrows move along the scale A much … A slightly | B slightly … B much.
  function point(row, verdict) {
    const scale = strengths(row), now = chosen(row);
    if (!scale.length || !["left", "right"].includes(verdict)) return choose(row, verdict, true);
    const at = scale.findIndex((radio) => radio.checked);
    const side = now && ["left", "right"].includes(now.value) ? now.value : "";
    if (side === verdict) return setStrength(row, String(Math.min(at + 2, 3)), false);
    if (side && at > 0) return setStrength(row, String(at), false);
    choose(row, verdict, false);
    setStrength(row, "1", false);
  }

  function choose(row, verdict, goOn) {
    if (!check($(`.choices:not(.strengths) input[value="${verdict}"]`, row)) || !goOn) return;
    const all = rows(), next = all[all.indexOf(row) + 1];
    if (next) focusRow(next); else $("[data-submit]").focus();
  }

  function setStrength(row, value, goOn) {
    const side = chosen(row);
    if (!side || !["left", "right"].includes(side.value)) return;
    check($(`.strengths input[value="${value}"]`, row));
    if (goOn) choose(row, side.value, true); else side.focus();
  }

  function check(radio) {
    if (!radio) return false;
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }

  function focusRow(row) {
    const radio = row && (chosen(row) || $("input", row));
    if (radio) radio.focus({ preventScroll: false });
  }

  function openBox(selector) {
    const box = $(selector);
    if (!box) return;
    box.open = true;
    const first = $("input:not([type=hidden]), textarea", box);
    if (first) first.focus();
  }

  function closeBox(el) {
    const box = el.closest("details[open]");
    if (!box || !root.contains(box)) return;
    box.open = false;
    $("summary", box).focus();
  }

  function openHelp() {
    const dialog = $("[data-help]");
    if (dialog && !dialog.open) dialog.showModal();
  }

  async function openGuide() {
    const link = $("[data-guide-link]"), dialog = $("[data-guide]");
    if (!link || !dialog || dialog.open) return;
    const place = $("[data-guide-body]", dialog);
    if (!place.children.length) {
      const part = await fetchPart(link.href, "[data-guide-text]");
      if (!part) return void window.open(link.href, "_blank", "noopener");
      place.append(part);
    }
    if (!dialog.open) dialog.showModal();
  }

  async function fetchPart(url, selector) {
    try {
      const answer = await fetch(url, { headers: { "HX-Request": "true" } });
      const part = $(selector, new DOMParser().parseFromString(await answer.text(), "text/html"));
      return answer.ok && part ? document.adoptNode(part) : null;
    } catch { return null; }
  }

  // ---------------------------------------------------------------- scrolling and difference
  function onScroll(event) {
    const pane = event.target;
    if (!root || !(pane instanceof Element) || !pane.matches(".answer")) return;
    if (echo.delete(pane) || !$("[data-linked]").checked) return;
    const reach = pane.scrollHeight - pane.clientHeight;
    if (reach > 0) for (const other of $$(".answer")) if (other !== pane) follow(other, pane.scrollTop / reach);
  }

  function follow(pane, share) {
    const to = Math.round(share * (pane.scrollHeight - pane.clientHeight));
    if (Math.abs(pane.scrollTop - to) < 1) return;
    echo.add(pane);
    pane.scrollTop = to;
  }

  function scrollAnswers(event, el) {
    const panes = $$(".answer").filter((pane) => pane.scrollHeight > pane.clientHeight + 1);
    if (!panes.length || el.closest(".answer, .question")) return;
    event.preventDefault();
    const step = { PageUp: -0.85, PageDown: 0.85, Home: -1e6, End: 1e6 }[event.key];
    const pane = panes.reduce((a, b) => (b.scrollHeight > a.scrollHeight ? b : a));
    pane.scrollTop += step * pane.clientHeight;
    if (!$("[data-linked]").checked) for (const p of panes) if (p !== pane) p.scrollTop += step * p.clientHeight;
  }

  async function toggleDiff() {
    const link = $("[data-diff-link]");
    if (!link) return;
    const here = token();
    if (!link.dataset.on && !(await loadDiff(link.href))) return void location.assign(link.href);
    if (token() !== here) return;
    link.dataset.on = link.dataset.on ? "" : "1";
    for (const body of $$(".answer .body")) {
      for (const part of body.children) part.hidden = part.classList.contains("diff") === !link.dataset.on;
    }
    link.dataset.label = link.dataset.label || link.firstChild.textContent;
    link.firstChild.textContent = link.dataset.on ? text("same") + " " : link.dataset.label;
  }

  async function loadDiff(url) {
    if ($(".answer .diff")) return true;
    try {
      const answer = await fetch(url, { headers: { "HX-Request": "true" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const parts = ["left", "right"].map((side) => $(`[data-side=${side}] .diff`, page));
      if (!answer.ok || parts.includes(null)) return false;
      ["left", "right"].forEach((side, i) => $(`[data-side=${side}] .body`).append(document.adoptNode(parts[i])));
      return true;
    } catch { return false; }
  }

  // ---------------------------------------------------------------- clocks
  function count() {
    const now = Date.now();
    const awake = !document.hidden && lastTick - lastActivity < IDLE_MS;
    if (awake) activeMs += Math.min(now - lastTick, 2000);
    lastTick = now;
    return now;
  }

  function tick() {
    const now = count();
    if (!root) return;
    if (deadline) showLease(Math.max(0, Math.round((deadline - now) / 1000)));
    if (!document.hidden && now - lastActivity < AWAY_MS && now - lastBeat >= BEAT_MS) beat();
  }

  function setLease(seconds) {
    const value = Number(seconds);
    deadline = seconds !== "" && Number.isFinite(value) ? Date.now() + value * 1000 : 0;
  }

  function showLease(left) {
    const clock = $("[data-countdown]");
    const time = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    if (clock) clock.textContent = text("left").replace("{time}", time);
    const state = left === 0 ? "expired" : left <= 60 ? "soon" : "";
    if (state && state !== warned && !sending) say(text(state));
    warned = state;
  }

  async function beat() {
    lastBeat = Date.now();
    const here = token();
    const answer = await post(root.dataset.heartbeatUrl, { token: here });
    if (!answer || !root || token() !== here) return;
    if (answer.status === 409 || answer.status === 410) return setLease("0");
    const type = answer.headers.get("Content-Type") || "";
    if (answer.ok && type.includes("json")) setLease((await answer.json()).expires_in);
  }

  function prefetch(here) {
    if (root && token() === here) post(root.dataset.prefetchUrl, { token: here });
  }

  async function post(url, fields, options = {}) {
    if (!url) return null;
    const headers = { "X-CSRFToken": csrf(), "HX-Request": "true" };
    const body = new URLSearchParams(fields);
    try { return await fetch(url, { method: "POST", headers, body, ...options }); } catch { return null; }
  }

  // ---------------------------------------------------------------- drafts: here, and on the server for another browser
  function saveDraft(synced = false) {
    if (!root) return;
    count();
    const fields = draftFields();
    if (!fields.some(([, value]) => value !== "")) return store(() => localStorage.removeItem(DRAFT + token()));
    store(() => localStorage.setItem(DRAFT + token(), JSON.stringify({ at: Date.now(), activeMs, fields, synced })));
  }

  function draftFields() {
    return [...new FormData(form())].filter(([name]) => !["token", "active_ms", "csrfmiddlewaretoken"].includes(name));
  }

  function keepSoon() {
    saveDraft();
    clearTimeout(keepTimer);
    if (root.dataset.draftUrl) keepTimer = setTimeout(keep, KEEP_MS, token());
  }

  async function keep(here) {
    if (!root || token() !== here || sending) return;
    count();
    const fields = draftFields(), body = [["token", here], ["active_ms", String(Math.round(activeMs))], ...fields];
    const answer = await post(root.dataset.draftUrl, body, { keepalive: true });
    const same = root && token() === here && JSON.stringify(draftFields()) === JSON.stringify(fields);
    if (answer && answer.status === 204 && same) saveDraft(true);
  }

  // What has not reached the server holds; else the server's, which another browser may have changed since.
  function restoreDraft() {
    store(dropOldDrafts);
    const draft = store(() => JSON.parse(localStorage.getItem(DRAFT + token())));
    if (!draft || !Array.isArray(draft.fields)) return;
    activeMs = Math.max(activeMs, Number(draft.activeMs) || 0);
    if (!(draft.synced && "kept" in root.dataset)) fill(draft.fields);
    const more = $("[data-reasons]");
    if (more && draft.fields.some(([name, value]) => value && (name === "tags" || name === "comment"))) more.open = true;
    if (!$("[data-status]").textContent) say(text("restored"));
  }

  function fill(fields) {
    for (const el of form().elements) {
      if (el.type === "hidden" || !el.name) continue;
      const values = fields.filter(([name]) => name === el.name).map(([, value]) => value);
      if (el.type === "radio" || el.type === "checkbox") el.checked = values.includes(el.value);
      else if (el.matches("input, textarea")) el.value = values[0] || "";
    }
  }

  function dropOldDrafts() {
    for (const key of Object.keys(localStorage).filter((name) => name.startsWith(DRAFT))) {
      const draft = JSON.parse(localStorage.getItem(key)) || {};
      if (!(Date.now() - draft.at < DRAFT_DAYS * 86_400_000)) localStorage.removeItem(key);
    }
  }

  function store(run) {
    try { return run(); } catch { return null; } // storage may be full, forbidden, or hold something else
  }

  // ---------------------------------------------------------------- sending
  function onSubmit(event) {
    if (!root || !root.contains(event.target)) return;
    const sent = event.target;
    if (sent.matches("[data-vote-form]")) {
      event.preventDefault();
      if (event.submitter && event.submitter.hasAttribute("data-flag-send")) flag(event.submitter);
      else if (complete()) submit(sent, true);
    }
    else if (sent.matches("[data-skip-form]")) { event.preventDefault(); submit(sent, true); }
    else if (sent.matches("[data-undo-form]")) { event.preventDefault(); submit(sent, false); }
  }

  function complete() {
    let first = null;
    for (const row of rows()) {
      const message = lacking(row);
      markRow(row, message);
      if (message && !first) first = row;
    }
    if (first) focusRow(first);
    return !first;
  }

  function lacking(row) {
    const side = chosen(row);
    if (!side) return text("missing");
    const open = strengths(row).length && ["left", "right"].includes(side.value) && !$(".strengths input:checked", row);
    return open ? text("strength") : "";
  }

  function markRow(row, message) {
    const place = $("[data-row-error]", row);
    row.toggleAttribute("data-invalid", Boolean(message));
    place.hidden = !message;
    place.textContent = message;
  }

  async function submit(sent, mayRetry) {
    if (sending) return;
    sending = true;
    clearTimeout(keepTimer);
    sent.setAttribute("aria-busy", "true");
    const here = token();
    saveDraft();
    try { await attempt(sent, here, mayRetry); }
    finally { sending = false; sent.removeAttribute("aria-busy"); }
  }

  async function attempt(sent, here, mayRetry) {
    count();
    if (sent.elements.active_ms) sent.elements.active_ms.value = String(Math.round(activeMs));
    for (let n = 0; ; n += 1) {
      if (n) say(text("sending"));
      const answer = await post(sent.action, new FormData(sent));
      const busy = !answer || answer.status >= 500 || answer.status === 429;
      if (!busy) return receive(answer, here, sent);
      if (!mayRetry || n >= RETRY_S.length) return mayRetry ? say(text("failed")) : say(text("unknown"), reload());
      say(text("offline").replace("{seconds}", RETRY_S[n]));
      await new Promise((done) => setTimeout(done, RETRY_S[n] * 1000));
    }
  }

  // A reported problem leaves the page and what was chosen as they are.
  async function flag(button) {
    const box = button.closest("[data-flag]"), place = $("[data-flag-error]", box);
    const kind = $("input[type=radio]:checked", box);
    place.hidden = Boolean(kind);
    place.textContent = kind ? "" : text("flag-kind");
    if (!kind) return $("input[type=radio]", box).focus();
    saveDraft();
    const answer = await post(button.formAction, new FormData(form()));
    if (!root || !root.contains(box)) return;
    if (!answer || answer.status >= 500) return say(text("flag-failed"));
    if (answer.status === 401) return say(text("signed-out"), signIn());
    if (answer.status !== 204) return say(text("stale"), reload());
    box.open = false;
    kind.checked = false;
    $("textarea", box).value = "";
    saveDraft();
    $("summary", box).focus();
    say(text("flagged"));
  }

  const reload = () => ({ href: location.href, label: text("reload") });

  async function receive(answer, here, sent) {
    const elsewhere = answer.ok && answer.headers.get("HX-Location");
    if (elsewhere) {
      if (!sent.matches("[data-undo-form]")) store(() => localStorage.removeItem(DRAFT + here));
      return location.assign(elsewhere);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("vote");
    if (!next) {
      const out = answer.status === 401 || answer.headers.has("HX-Redirect") || $("input[type=password]", page);
      return out ? say(text("signed-out"), signIn()) : say(text("stale"), reload());
    }
    if (answer.ok && next.dataset.token !== here && !sent.matches("[data-undo-form]")) {
      store(() => localStorage.removeItem(DRAFT + here));
    }
    root.replaceWith(document.adoptNode(next));
    start({ focus: KEYBOARD });
    if (answer.ok && root) tell(sent);
    if (!KEYBOARD) scrollTo(0, 0);
  }

  function tell(sent) {
    if (sent.matches("[data-undo-form]")) say(text("undone"));
    else if (sent.matches("[data-skip-form]")) say(text("skipped"));
  }

  function signIn() {
    const url = new URL(root.dataset.loginUrl || location.href, location.href);
    url.searchParams.set("next", location.pathname + location.search);
    return { href: url.href, label: text("sign-in") };
  }

  // ---------------------------------------------------------------- wiring
  function onChange(event) {
    if (!root || !root.contains(event.target)) return;
    const row = event.target.closest(".verdict");
    if (row) markRow(row, "");
    if (event.target.form === form()) keepSoon();
  }

  function onClick(event) {
    if (!root || !(event.target instanceof Element)) return;
    if (event.target.closest("[data-help-open]")) openHelp();
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (plain && event.target.closest("[data-guide-link]")) { event.preventDefault(); openGuide(); }
    if (plain && event.target.closest("[data-diff-link]")) { event.preventDefault(); toggleDiff(); }
  }

  function leave() {
    const draft = root && store(() => JSON.parse(localStorage.getItem(DRAFT + token())));
    if (!draft) return;
    saveDraft(draft.synced);
    clearTimeout(keepTimer);
    if (!draft.synced && root.dataset.draftUrl) keep(token());
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("submit", onSubmit);
  document.addEventListener("change", onChange);
  document.addEventListener("input", onChange);
  document.addEventListener("click", onClick);
  document.addEventListener("scroll", onScroll, { capture: true, passive: true });
  for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "touchmove"]) {
    document.addEventListener(kind, () => { lastActivity = Date.now(); }, { capture: true, passive: true });
  }
  document.addEventListener("toggle", (event) => {
    if (event.target.matches(".skip-box[open]")) event.target.scrollIntoView({ block: "nearest" });
  }, { capture: true });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leave(); else { lastTick = lastActivity = Date.now(); }
  });
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  setInterval(tick, 1000);
  start({ focus: KEYBOARD });
})();
