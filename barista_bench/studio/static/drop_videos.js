// Videos that are dropped on the page, sent to the studio's folder one after the other.
import { node } from "./elements.js";
import { below } from "./server.js";
import { explained } from "./status.js";

const FOLDER = "videos"; // the default folder

/**
 * @param {{ name: string, input: HTMLInputElement | HTMLSelectElement }[]} inputs of the form of a new project
 * @param {() => unknown} changed
 */
export function dropZone(inputs, changed) {
  const field = inputs.find(({ name }) => name === "videos")?.input;
  const messages = node("ul", { class: "facts-list", "aria-live": "polite" });
  const choose = node("input", { type: "file", accept: "video/*", multiple: true, class: "hidden" });
  /** @param {FileList | null | undefined} files */
  const take = async (files) => {
    const folder = field?.value && !field.value.startsWith("/") ? field.value : FOLDER;
    for (const file of files ?? []) {
      const line = node("li", {}, `${file.name}: 0 %`);
      messages.append(line);
      line.textContent = await upload(folder, file, (fraction) => {
        line.textContent = `${file.name}: ${Math.round(100 * fraction)} %`;
      });
    }
    if (field) field.value = folder;
    changed();
  };
  choose.addEventListener(
    "change",
    explained(() => take(choose.files)),
  );
  const zone = node("label", { class: "drop" }, "Drop videos here, or choose files", choose);
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    explained(take)(event.dataTransfer?.files);
  });
  return node("div", {}, zone, messages);
}

/**
 * What became of a file. A request of this kind, since it says how much was sent.
 * @param {string} folder
 * @param {File} file
 * @param {(fraction: number) => void} progress
 * @returns {Promise<string>}
 */
function upload(folder, file, progress) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open("POST", below(`/api/upload?${new URLSearchParams({ folder, name: file.name })}`));
    request.responseType = "json";
    request.upload.addEventListener("progress", ({ loaded, total }) => progress(loaded / total));
    request.addEventListener("load", () => {
      done(request.status === 200 ? `${request.response.path}: ready` : (request.response?.error ?? file.name));
    });
    request.addEventListener("error", () => done(`${file.name}: could not be sent`));
    request.send(file);
  });
}
