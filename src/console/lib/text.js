// SPDX-License-Identifier: ISC
/**
 * Text that others have written, such as messages of commits and names of accounts at
 * the Git server.
 */

/**
 * The text without the control characters that show it, and what follows, in another
 * order than it has: Unicode's embeddings, overrides and isolates.
 * @param {string} text
 */
export function inOrder(text) {
	return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, '');
}
