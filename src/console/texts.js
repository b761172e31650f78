// SPDX-License-Identifier: ISC
/** The language of the console: a folder of texts, and nothing else, makes a language. */
export { texts as t } from './texts/en/index.js';
