// SPDX-License-Identifier: ISC
/** The language of the console. */
export { texts as t } from './texts/en.js';
