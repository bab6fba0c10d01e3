"use strict";
const WIDTH = 1200, LETTER = 7, boxes = [...document.querySelectorAll(".b")];
const told = document.getElementById("told"), all = document.getElementById("all");
const at = (box) => ["x", "w", "d", "n"].map((key) => Number(box.dataset[key]));
const nameOf = (box) => box.querySelector("title").textContent.split("\n")[0];
const whole = boxes[0] ? at(boxes[0]) : [0, 1, 0, 0];
let shown = whole, found = "";
function draw() {
  const scale = WIDTH / shown[1];
  for (const box of boxes) {
    const [x, w, d] = at(box), [rect, text] = [box.querySelector("rect"), box.querySelector("text")];
    const left = Math.max(0, (x - shown[0]) * scale), right = Math.min(WIDTH, (x + w - shown[0]) * scale);
    box.classList.toggle("hidden", right - left < 0.1);
    box.classList.toggle("above", d < shown[2]);
    rect.setAttribute("x", left);
    rect.setAttribute("width", Math.max(0, right - left));
    text.setAttribute("x", left + 3);
    const letters = Math.floor((right - left) / LETTER), name = nameOf(box).replace(/ \([^()]*\)$/, "");
    text.textContent = letters < 3 ? "" : name.length <= letters ? name : name.slice(0, letters - 1) + "…";
  }
  all.classList.toggle("hidden", shown === whole);
}
function search() {
  const wanted = prompt("search: part of a name", found);
  if (wanted === null) return;
  found = wanted;
  // What is below a match is in it: only outermost ones add up.
  const spans = [];
  let sum = 0;
  for (const box of boxes) {
    const [x, w, , n] = at(box);
    const is = found !== "" && !box.classList.contains("many") && nameOf(box).toLowerCase().includes(found.toLowerCase());
    box.classList.toggle("found", is);
    if (is && !spans.some(([from, to]) => x >= from && x + w <= to)) {
      spans.push([x, x + w]);
      sum += n;
    }
  }
  told.textContent = found === "" ? "" : `found in ${(100 * sum / Math.max(1, whole[3])).toFixed(2)}%`;
}
for (const box of boxes) {
  box.addEventListener("click", () => { shown = at(box); draw(); });
  box.addEventListener("mouseenter", () => { told.textContent = box.querySelector("title").textContent.replace("\n", ": "); });
}
all.addEventListener("click", () => { shown = whole; draw(); });
const find = document.getElementById("find");
find.classList.remove("hidden");
find.addEventListener("click", search);
