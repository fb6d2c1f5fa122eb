// Looks at a page of the console from inside. The browser runs this file before the page's own
// script, and a test then calls `probe`. Policies of the page do not hold for this script.
/* global document, getComputedStyle, performance */

const LEAST_CONTRAST = 4.5;
const PX_PER_FRAME = 600;

/**
 * Red, green and blue, and the share of the ground that the colour covers.
 *
 * @typedef {readonly [number, number, number, number]} Colour
 */

/**
 * @param {string} text a computed colour
 * @returns {Colour}
 */
function colourOf(text) {
  const [red = 0, green = 0, blue = 0, alpha = 1] = (text.match(/[\d.]+/g) ?? []).map(Number);
  return [red, green, blue, alpha];
}

/**
 * @param {Colour} colour
 * @param {Colour} ground covers all
 * @returns {Colour}
 */
function over([red, green, blue, alpha], ground) {
  /** @param {number} part @param {number} below */
  const mix = (part, below) => part * alpha + below * (1 - alpha);
  return [mix(red, ground[0]), mix(green, ground[1]), mix(blue, ground[2]), 1];
}

/**
 * The colour behind a text: of the element, and through it of the elements around it.
 *
 * @param {Element | null} element
 * @returns {Colour}
 */
function groundOf(element) {
  if (element === null) return [255, 255, 255, 1];
  const own = colourOf(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own : over(own, groundOf(element.parentElement));
}

/**
 * The share of an element's colour that its own opacity and all opacities around it leave.
 *
 * @param {Element | null} element
 * @returns {number}
 */
function opacityOf(element) {
  return element === null ? 1 : Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement);
}

/**
 * Luminance by WCAG 2.2.
 *
 * @param {Colour} colour
 */
function luminanceOf(colour) {
  const [red = 0, green = 0, blue = 0] = colour.slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * @param {Colour} a
 * @param {Colour} b
 */
function ratio(a, b) {
  const [dark = 0, light = 0] = [luminanceOf(a), luminanceOf(b)].toSorted((one, other) => one - other);
  return (light + 0.05) / (dark + 0.05);
}

/**
 * @param {Element} element
 * @param {string} [pseudo]
 */
function contrastOf(element, pseudo) {
  const ground = groundOf(element);
  const [red, green, blue, alpha] = colourOf(getComputedStyle(element, pseudo).color);
  return ratio(over([red, green, blue, alpha * opacityOf(element)], ground), ground);
}

/**
 * The contrast of the times below the lines of a chart: the highest of a point there, because the
 * edges of letters are fainter.
 *
 * @param {HTMLCanvasElement} canvas
 */
function contrastOfCanvas(canvas) {
  const ground = groundOf(canvas);
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  if (copy === null) throw new Error("the browser draws no canvas");
  copy.drawImage(canvas, 0, 0);
  const part = Math.ceil(height / 5);
  const { data } = copy.getImageData(0, height - part, width, part);
  let highest = 1;
  for (let i = 0; i < data.length; i += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(i, i + 4);
    if (alpha === 255) highest = Math.max(highest, ratio([red, green, blue, 1], ground));
  }
  return highest;
}

/**
 * The text that an element itself shows, without the texts of the elements inside it.
 *
 * @param {Element} element
 */
function textOf(element) {
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) return element.value;
  const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
  return own.map((node) => node.textContent ?? "").join("");
}

/** @returns the lowest contrast of a text on the page, and each text whose contrast is too low */
async function contrast() {
  // A chart hears of another theme in one frame, and draws itself in the next.
  for (const _ of [1, 2]) await drawn();
  let lowest = Infinity;
  /** @type {Set<string>} */
  const faint = new Set();
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest(":disabled, svg, option") !== null) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const isHint = "placeholder" in element && element.placeholder !== "" && textOf(element) === "";
    const text = isHint ? String(element.placeholder) : textOf(element).trim();
    if (text === "") continue;
    const found = contrastOf(element, isHint ? "::placeholder" : undefined);
    lowest = Math.min(lowest, found);
    if (found < LEAST_CONTRAST) faint.add(`${nameOf(element)} “${text.slice(0, 40)}” has ${found.toFixed(2)}`);
  }
  for (const canvas of document.querySelectorAll("canvas")) {
    const found = contrastOfCanvas(canvas);
    lowest = Math.min(lowest, found);
    if (found < LEAST_CONTRAST) faint.add(`a canvas has ${found.toFixed(2)}`);
  }
  return { lowest, faint: [...faint] };
}

/** @param {Element} element */
function nameOf(element) {
  const label = element.getAttribute("aria-label") ?? textOf(element).trim();
  return `${element.tagName.toLowerCase()}.${element.className} ${label.slice(0, 30)}`;
}

/** @param {Element} element */
function ringOf(element) {
  const { outlineStyle, outlineWidth, outlineColor, boxShadow } = getComputedStyle(element);
  return `${outlineStyle === "none" ? "none" : `${outlineStyle} ${outlineWidth} ${outlineColor}`} ${boxShadow}`;
}

/**
 * How many sides of the outline no element around it cuts off.
 *
 * @param {Element} element
 */
function sidesSeen(element) {
  const { outlineWidth, outlineOffset } = getComputedStyle(element);
  const more = Number.parseFloat(outlineWidth) + Number.parseFloat(outlineOffset);
  const box = element.getBoundingClientRect();
  const sides = { top: box.top - more, bottom: box.bottom + more, left: box.left - more, right: box.right + more };
  const cut = new Set();
  for (let around = element.parentElement; around !== null; around = around.parentElement) {
    if (getComputedStyle(around).overflow === "visible") continue;
    const edge = around.getBoundingClientRect();
    if (sides.top < edge.top - 0.5) cut.add("top");
    if (sides.bottom > edge.bottom + 0.5) cut.add("bottom");
    if (sides.left < edge.left - 0.5) cut.add("left");
    if (sides.right > edge.right + 0.5) cut.add("right");
  }
  return 4 - cut.size;
}

/** @type {WeakSet<Element>} */
let reached = new WeakSet();

/**
 * Looks at the element that the key Tab has just reached.
 *
 * @returns undefined if Tab has been at all elements; else whether the user can see the focus
 */
function focused() {
  const element = document.activeElement;
  if (!(element instanceof HTMLElement) || element === document.body || reached.has(element)) {
    reached = new WeakSet();
    return undefined;
  }
  reached.add(element);
  const ring = ringOf(element);
  const sides = sidesSeen(element);
  // The browser continues from an element that has lost the focus.
  element.blur();
  const isSeen = ring !== ringOf(element) && sides >= 3;
  element.focus({ preventScroll: true });
  return { name: nameOf(element), isSeen };
}

/** @returns each element that moves although the user wants no motion */
function moving() {
  return [...document.querySelectorAll("*")].flatMap((element) => {
    const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
    const isStill = /^0s(, 0s)*$/.test(transitionDuration) && animationName === "none" && scrollBehavior === "auto";
    return isStill ? [] : [nameOf(element)];
  });
}

// A test may stop the page's clock, but not these.
const { requestAnimationFrame, setTimeout } = globalThis;

/** @returns {Promise<number>} the begin of the next frame, in ms */
const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** Resolves when the browser has drawn the next frame. */
const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

/** Scrolls the first list from its begin to its end, a whole view in each frame. */
async function scroll() {
  const rows = document.querySelector(".rows");
  if (rows === null) throw new Error("the page has no list");
  rows.scrollTop = 0;
  let [longestMs, mostRows] = [0, 0];
  const end = rows.scrollHeight - rows.clientHeight;
  for (let before = await nextFrame(); rows.scrollTop < end - 1;) {
    rows.scrollTop += PX_PER_FRAME;
    const at = await nextFrame();
    longestMs = Math.max(longestMs, at - before);
    mostRows = Math.max(mostRows, document.querySelectorAll("[role=row]").length);
    before = at;
  }
  return { longestMs, mostRows };
}

/**
 * Tells the page that its tab is hidden, or visible. A browser without a screen hides no tab.
 *
 * @param {boolean} isHidden
 */
function hide(isHidden) {
  Object.defineProperty(document, "hidden", { configurable: true, value: isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}

/** @type {number | undefined} */
let rowsAt;

/** @returns when the browser first painted something, and a row, in ms since the request */
function paints() {
  const [first] = performance.getEntriesByName("first-contentful-paint");
  return first === undefined || rowsAt === undefined ? undefined : { firstMs: first.startTime, rowsMs: rowsAt };
}

new MutationObserver((_, observer) => {
  if (document.querySelector("[role=row][data-id]") === null) return;
  observer.disconnect();
  // The frame that begins next shows the rows, and has been painted when the next task runs.
  requestAnimationFrame(() => setTimeout(() => (rowsAt = performance.now())));
}).observe(document, { childList: true, subtree: true });

Object.assign(globalThis, { probe: { contrast, focused, moving, scroll, drawn, hide, paints } });
