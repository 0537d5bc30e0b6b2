"use strict";

// Sends the form to POST /data and shows the answer as it came. The seed stays in the page.
const form = document.getElementById("form");
const state = document.getElementById("status");
const answer = document.getElementById("answer");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  answer.hidden = true;
  const button = form.querySelector("button");
  button.disabled = true;
  state.textContent = "…";
  try {
    // The text of the data goes as it was written: JavaScript would round integers above 2^53.
    const seed = JSON.stringify(document.getElementById("seed").value);
    const response = await fetch("data", {
      method: "POST",
      headers: { "Accept": "application/json", "Content-Type": "application/json" },
      body: `{"seed":${seed},"data":${document.getElementById("data").value}}`,
    });
    state.textContent = `${response.status} ${response.statusText}`;
    answer.textContent = pretty(await response.text());
    answer.hidden = false;
  } catch (error) {
    state.textContent = String(error);
  } finally {
    button.disabled = false;
  }
});

// Line breaks only; parsing would round large integers here as well.
function pretty(text) {
  return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
}
