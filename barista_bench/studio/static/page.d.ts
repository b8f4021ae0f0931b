/** What views and elements of the studio's page are made of. */

export type Child = Node | string | null | undefined;

/** What a route shows, the keys that work there, and what follows once it is shown. */
export interface View {
  elements: Child[];
  keys?: Keys;
  onShown?: () => unknown;
}

/** What a key does, in words, and its doing. */
export type KeyAction = [words: string, act: () => unknown];

/** By the name of the key; with shift, an arrow's begins with `shift+`, and any with control with `ctrl+`. */
export type Keys = Record<string, KeyAction>;

type Listeners = { [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => unknown };

/** Attributes, and listeners of the event of their name. */
export interface Properties extends Listeners {
  // biome-ignore lint/suspicious/noExplicitAny: as wide as the listeners above, of any event
  [name: string]: string | number | boolean | null | undefined | ((event: any) => unknown);
}
