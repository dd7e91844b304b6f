// Every page: mark that scripts run, keep focus and announcements right after a swap.
"use strict";
document.documentElement.classList.add("js");

document.addEventListener("htmx:responseError", (event) => announce(event));
document.addEventListener("htmx:sendError", (event) => announce(event));

function announce(event) {
  const region = document.getElementById("messages");
  const out = event.detail.xhr.status === 401;
  const text = region && (out ? region.dataset.signedOut : region.dataset.requestFailed);
  if (!text) return;
  event.stopPropagation();
  if (region.textContent.startsWith(text)) return; // a page that asks every few seconds says it once
  const note = document.createElement("p");
  note.className = "notice error";
  note.dataset.failed = "";
  note.textContent = text;
  if (out) note.append(" ", signIn(region));
  region.replaceChildren(note);
}

// What failed works again, perhaps after a login in another tab.
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) document.querySelectorAll("#messages [data-failed]").forEach((note) => note.remove());
});

// A login in another tab changes the token against forgery: the cookie has the present one.
document.addEventListener("htmx:configRequest", (event) => {
  const found = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/);
  if (!found) return;
  event.detail.headers["X-CSRFToken"] = found[1];
  const sent = event.detail.formData;
  if (sent.has("csrfmiddlewaretoken")) sent.set("csrfmiddlewaretoken", found[1]);
});

function signIn(region) {
  const link = document.createElement("a"), url = new URL(region.dataset.loginUrl, location.href);
  url.searchParams.set("next", location.pathname + location.search);
  link.href = url.href;
  link.target = "_blank"; // what is typed here stays
  link.textContent = region.dataset.signIn;
  return link;
}

// Selects and checkboxes that filter a list: their form is sent as soon as they change.
document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form && form.hasAttribute("data-autosubmit")) form.requestSubmit();
});
