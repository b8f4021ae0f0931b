/** `konva.min.js` is loaded by the page before its modules. */
declare const Konva: typeof import("konva").default;
