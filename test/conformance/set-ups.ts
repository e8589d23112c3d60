/** The set-ups in which the public suites look at an agent: each turns on or off what a suite only checks where the card declares it. */
export const SET_UPS = {
  main: { description: 'streams and push notifications', bindings: { EXTENDED_CARD: 'off' } },
  'capabilities-off': {
    description: 'neither streams nor push notifications nor an extended card',
    bindings: { STREAMING: 'off', PUSH_NOTIFICATIONS: 'off', EXTENDED_CARD: 'off' },
  },
  'extended-card': { description: 'an extended card', bindings: {} },
  'required-extension': {
    description: 'an extension that every message has to name; everything else of a suite fails here',
    bindings: { EXTENDED_CARD: 'off', REQUIRED_EXTENSIONS: 'urn:a2a:tck:required-extension' },
  },
} as const satisfies Readonly<Record<string, { readonly description: string; readonly bindings: Readonly<Record<string, string>> }>>;

export type SetUp = keyof typeof SET_UPS;
export const SET_UP_NAMES = Object.keys(SET_UPS) as readonly SetUp[];
