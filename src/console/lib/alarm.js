// SPDX-License-Identifier: ISC
/** A pause that an event can end. */

/** @param {number} ms */
function sleep(ms) {
	return new Promise((resolve) => setTimeout(resolve, ms));
}

export class Alarm {
	#rung = false;
	#wake = () => {};

	/** Ends the pause, or the next one. */
	ring() {
		this.#rung = true;
		this.#wake();
	}

	/**
	 * Resolves after `most` milliseconds, or when it rings, but not before `least`.
	 * @param {number} most
	 * @param {number} least
	 */
	async wait(most, least) {
		await sleep(least);
		if (!this.#rung) {
			let timer = 0;
			await new Promise((resolve) => {
				this.#wake = () => resolve(undefined);
				timer = setTimeout(this.#wake, most - least);
			});
			clearTimeout(timer);
		}
		this.#rung = false;
	}
}
