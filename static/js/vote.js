// Comparison behaviour: keys, linked scrolling, lease clock, active time, drafts, safe submission.
// Every form here also works by plain POST; all texts come from data-t-* attributes of [data-vote].
"use strict";

(() => {
  const IDLE_MS = 60_000, AWAY_MS = 300_000, BEAT_MS = 60_000, RETRY_S = [1, 2, 4, 8, 15, 30];
  const DRAFT = "palate:draft:", DRAFT_DAYS = 7;
  // On a touch screen or in a narrow window the focus would scroll past the answers.
  const KEYBOARD = matchMedia("(hover: hover) and (min-width: 60rem)").matches;
  const DEFAULT_KEYS = { verdicts: "v", undo: "u", skip: "s", diff: "d", help: "?" };
  const DIRECTIONS = { ArrowLeft: "left", ArrowDown: "tie", ArrowRight: "right", ArrowUp: "both_bad" };

  let root = null;          // the [data-vote] element in place
  let keys = new Map();     // key -> action
  let sending = false;
  let activeMs = 0, lastTick = Date.now(), lastActivity = Date.now();
  let deadline = 0, lastBeat = 0, warned = "";
  const echo = new WeakSet();

  const $ = (selector, from = root) => from && from.querySelector(selector);
  const $$ = (selector, from = root) => (from ? [...from.querySelectorAll(selector)] : []);
  const text = (name) => root.getAttribute("data-t-" + name) || "";
  const form = () => $("[data-vote-form]");
  const rows = () => $$(".verdict");
  const token = () => root.dataset.token;
  const csrf = () => ($("[name=csrfmiddlewaretoken]") || {}).value || "";

  // ---------------------------------------------------------------- start, and again after each swap
  function start({ focus }) {
    root = document.querySelector("[data-vote]");
    document.body.classList.toggle("page-vote", Boolean(root));
    if (!root) return;
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
    for (const [action, key] of Object.entries(wanted || {})) {
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
    const row = el.closest(".verdict");
    if (row && event.key in DIRECTIONS) return take(event, () => choose(row, DIRECTIONS[event.key]));
    if (event.key === "Enter") return onEnter(event, el);
    if (event.key === "Escape") return closeSkip(el);
    if (["PageUp", "PageDown", "Home", "End"].includes(event.key)) return scrollAnswers(event, el);
    const action = keys.get(event.key.toLowerCase());
    if (action) take(event, () => ACTIONS[action] && ACTIONS[action]());
  }

  function take(event, run) {
    event.preventDefault();
    if (!event.repeat) run();
  }

  function onEnter(event, el) {
    if (event.repeat) return event.preventDefault();
    if (el.closest("a, button, summary, [data-skip-form]")) return;
    take(event, () => form().requestSubmit());
  }

  const ACTIONS = {
    verdicts: () => focusRow(rows()[0]),
    undo: () => { const f = $("[data-undo-form]"); if (f) f.requestSubmit(); },
    skip: openSkip,
    diff: toggleDiff,
    help: openHelp,
  };

  function choose(row, verdict) {
    const radio = $(`input[value="${verdict}"]`, row);
    if (!radio) return;
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
    const all = rows(), next = all[all.indexOf(row) + 1];
    if (next) focusRow(next); else $("[data-submit]").focus();
  }

  function focusRow(row) {
    const radio = row && ($("input:checked", row) || $("input", row));
    if (radio) radio.focus({ preventScroll: false });
  }

  function openSkip() {
    const box = $("[data-skip]");
    if (!box) return;
    box.open = true;
    const first = $("input[type=radio]", box);
    if (first) first.focus();
  }

  function closeSkip(el) {
    const box = el.closest("[data-skip][open]");
    if (!box) return;
    box.open = false;
    $("summary", box).focus();
  }

  function openHelp() {
    const dialog = $("[data-help]");
    if (dialog && !dialog.open) dialog.showModal();
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

  async function post(url, fields) {
    if (!url) return null;
    const headers = { "X-CSRFToken": csrf(), "HX-Request": "true" };
    try { return await fetch(url, { method: "POST", headers, body: new URLSearchParams(fields) }); } catch { return null; }
  }

  // ---------------------------------------------------------------- drafts
  function saveDraft() {
    if (!root) return;
    count();
    const data = new FormData(form());
    const fields = [...data].filter(([name]) => !["token", "active_ms", "csrfmiddlewaretoken"].includes(name));
    if (!fields.some(([, value]) => value !== "")) return store(() => localStorage.removeItem(DRAFT + token()));
    store(() => localStorage.setItem(DRAFT + token(), JSON.stringify({ at: Date.now(), activeMs, fields })));
  }

  function restoreDraft() {
    store(dropOldDrafts);
    const draft = store(() => JSON.parse(localStorage.getItem(DRAFT + token())));
    if (!draft || !Array.isArray(draft.fields)) return;
    activeMs = Math.max(activeMs, Number(draft.activeMs) || 0);
    for (const [name, value] of draft.fields) {
      for (const el of $$("input, textarea", form())) {
        if (el.name !== name || el.type === "hidden") continue;
        if (el.type === "radio" || el.type === "checkbox") el.checked = el.checked || el.value === value;
        else if (!el.value) el.value = value;
      }
    }
    const more = $("details", form());
    if (more && draft.fields.some(([name, value]) => value && (name === "tags" || name === "comment"))) more.open = true;
    if (!$("[data-status]").textContent) say(text("restored"));
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
    if (sent.matches("[data-vote-form]")) { event.preventDefault(); if (complete()) submit(sent, true); }
    else if (sent.matches("[data-skip-form]")) { event.preventDefault(); submit(sent, true); }
    else if (sent.matches("[data-undo-form]")) { event.preventDefault(); submit(sent, false); }
  }

  function complete() {
    let first = null;
    for (const row of rows()) {
      const missing = !$("input:checked", row);
      markRow(row, missing ? text("missing") : "");
      if (missing && !first) first = row;
    }
    if (first) focusRow(first);
    return !first;
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

  const reload = () => ({ href: location.href, label: text("reload") });

  async function receive(answer, here, sent) {
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
    if (event.target.closest("[data-vote-form]")) saveDraft();
  }

  function onClick(event) {
    if (!root || !(event.target instanceof Element)) return;
    if (event.target.closest("[data-help-open]")) openHelp();
    const plain = !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (plain && event.target.closest("[data-diff-link]")) { event.preventDefault(); toggleDiff(); }
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
    if (event.target.matches("[data-skip][open]")) event.target.scrollIntoView({ block: "nearest" });
  }, { capture: true });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) saveDraft(); else { lastTick = lastActivity = Date.now(); }
  });
  window.addEventListener("pagehide", saveDraft);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  setInterval(tick, 1000);
  start({ focus: KEYBOARD });
})();
