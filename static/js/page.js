// Every page: mark that scripts run, keep focus and announcements right after a swap.
"use strict";
document.documentElement.classList.add("js");

document.addEventListener("htmx:responseError", (event) => announce(event));
document.addEventListener("htmx:sendError", (event) => announce(event));

function announce(event) {
  const region = document.getElementById("messages");
  const text = region && region.dataset.requestFailed;
  if (!text) return;
  const note = document.createElement("p");
  note.className = "notice error";
  note.textContent = text;
  region.replaceChildren(note);
  event.stopPropagation();
}

// Selects and checkboxes that filter a list: their form is sent as soon as they change.
document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form && form.hasAttribute("data-autosubmit")) form.requestSubmit();
});
