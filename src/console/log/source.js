// SPDX-License-Identifier: ISC
/**
 * The bytes of a log: blocks of it, fetched when they are needed and kept up to a
 * limit, and its growth, followed by offset, so that a lost connection loses nothing.
 */
import { BLOCK, Block, countLines, extent } from './lines.js';
import { Problem } from '../lib/api.js';
import { t } from '../texts.js';

const CACHED_BLOCKS = Math.floor(16 * 2 ** 20 / BLOCK);
const WAIT_S = 20;
const POLL_MS = 2000; // where nothing waits
const SHORT_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 20000;

/** A request that waits: too many do, or what holds them does not run. */
const REJECTED = new Set([429, 503]);

/** @typedef {{ lines: number }} Growth how many lines came, as far as that is known */

/**
 * @param {Uint8Array} a
 * @param {Uint8Array} b
 */
function join(a, b) {
	const both = new Uint8Array(a.length + b.length);
	both.set(a);
	both.set(b, a.length);
	return both;
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 */
function pause(ms, signal) {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, ms);
		signal.addEventListener('abort', () => {
			clearTimeout(timer);
			resolve(undefined);
		}, { once: true });
	});
}

/**
 * @param {Response} response
 * @returns {Promise<Problem>}
 */
async function problemOf(response) {
	const members = await response.json().catch(() => ({}));
	return new Problem({ status: response.status, detail: t.lost.status(response.status), ...members });
}

export class LogSource {
	/**
	 * @param {string} address of the log
	 * @param {AbortSignal} signal ends all requests
	 * @param {(growth: Growth) => void} changed called when there is more to show
	 */
	constructor(address, signal, changed) {
		this.address = address;
		this.signal = signal;
		this.changed = changed;
		this.size = 0;
		this.complete = false;
		/** Whether the service cannot be reached at present. */
		this.lost = false;
		/** @type {Problem | null} why the log cannot be read at all */
		this.problem = null;
		/** @type {Map<number, Block>} the block used last comes last */
		this.blocks = new Map();
		/** @type {Set<number>} */
		this.loading = new Set();
	}

	/**
	 * @param {string} query
	 * @param {RequestInit} [init]
	 */
	async #fetch(query, init = {}) {
		const response = await fetch(this.address + query,
			{ signal: this.signal, credentials: 'same-origin', cache: 'no-store', ...init });
		if (!response.ok)
			throw await problemOf(response);
		return response;
	}

	/** @param {Response} response */
	#readState(response) {
		this.complete = response.headers.get('X-Log-Complete') === 'true';
		return Number(response.headers.get('X-Log-Size'));
	}

	/** Learns the size of the log. */
	async open() {
		await this.#retry(async () => {
			this.size = this.#readState(await this.#fetch('', { method: 'HEAD' }));
		});
		this.changed({ lines: 0 });
	}

	/**
	 * Repeats an action until it succeeds, with growing pauses.
	 * @param {() => Promise<void>} action
	 */
	async #retry(action) {
		for (let ms = SHORT_PAUSE_MS; !this.signal.aborted; ms = Math.min(ms * 2, LONGEST_PAUSE_MS)) {
			try {
				await action();
				this.#setLost(false);
				return;
			} catch (error) {
				if (this.#isFinal(error))
					return;
			}
			await pause(ms, this.signal);
		}
	}

	/**
	 * Notes an error; whether it is useless to try again.
	 * @param {unknown} error
	 */
	#isFinal(error) {
		if (this.signal.aborted)
			return true;
		if (!(error instanceof Problem) || error.passing) {
			this.#setLost(true);
			return false;
		}
		if (error.status === 401 || error.status === 429)
			return false;
		this.problem = error;
		this.changed({ lines: 0 });
		return true;
	}

	/** @param {boolean} lost */
	#setLost(lost) {
		if (this.lost === lost)
			return;
		this.lost = lost;
		this.changed({ lines: 0 });
	}

	/** Follows the log until it is complete. */
	async follow() {
		while (!this.complete && !this.#isOver)
			await this.#retry(() => this.#receive());
	}

	/**
	 * What follows, as soon as there is something. Requests that wait can be rejected
	 * while others succeed; then the log is read at intervals.
	 */
	async #next() {
		try {
			return await this.#fetch(`?offset=${this.size}&wait=${WAIT_S}`);
		} catch (error) {
			if (!(error instanceof Problem) || !REJECTED.has(error.status))
				throw error;
		}
		await pause(POLL_MS, this.signal);
		return this.#fetch(`?offset=${this.size}`);
	}

	async #receive() {
		const response = await this.#next();
		const size = this.#readState(response);
		if (size - this.size > BLOCK) {
			// Too much to be worth reading before it is looked at.
			await response.body?.cancel();
			this.#grow(size, null);
		} else {
			const bytes = new Uint8Array(await response.arrayBuffer());
			this.#grow(this.size + bytes.length, bytes);
		}
	}

	/**
	 * @param {number} size
	 * @param {Uint8Array | null} bytes those that are new, if they are here
	 */
	#grow(size, bytes) {
		const before = this.size;
		this.size = size;
		for (const [index, block] of this.blocks)
			if (!block.isFinal && !this.loading.has(index))
				this.#extend(index, block, before, bytes);
		if (size > before || this.complete)
			this.changed({ lines: bytes === null ? 0 : countLines(bytes) });
	}

	/**
	 * Adds new bytes to a block that they follow; forgets a block that they do not.
	 * @param {number} index
	 * @param {Block} block
	 * @param {number} before the size of the log until now
	 * @param {Uint8Array | null} bytes
	 */
	#extend(index, block, before, bytes) {
		const have = block.from + block.bytes.length;
		if (bytes === null || have !== before)
			this.blocks.delete(index);
		else
			this.blocks.set(index, new Block(index,
				join(block.bytes, bytes.subarray(0, extent(index, this.size).end - have))));
	}

	/**
	 * The bytes of a range.
	 * @param {import('./lines.js').Range} range
	 * @param {AbortSignal} [signal]
	 */
	async read({ start, end }, signal = this.signal) {
		const headers = { Range: `bytes=${start}-${end - 1}` };
		return new Uint8Array(await (await this.#fetch('', { headers, signal })).arrayBuffer());
	}

	/**
	 * Fetches what is missing of a block: the log can grow meanwhile.
	 * @param {number} index
	 */
	async #complete(index) {
		const { start, end } = extent(index, this.size);
		const have = this.blocks.get(index)?.bytes ?? new Uint8Array();
		if (start + have.length >= end)
			return;
		const more = await this.read({ start: start + have.length, end });
		this.blocks.set(index, new Block(index, join(have, more)));
		this.changed({ lines: 0 });
		await this.#complete(index);
	}

	/** @param {number} index */
	async #load(index) {
		this.loading.add(index);
		await this.#retry(() => this.#complete(index));
		this.loading.delete(index);
		for (const oldest of this.blocks.keys()) {
			if (this.blocks.size <= CACHED_BLOCKS)
				break;
			this.blocks.delete(oldest);
		}
		if (!this.#isOver)
			this.changed({ lines: 0 });
	}

	/** Whether nothing more will come: to ask again for what is missing would never end. */
	get #isOver() {
		return this.signal.aborted || this.problem !== null;
	}

	/**
	 * A block; null while it is being fetched, or if it cannot be.
	 * @param {number} index
	 */
	block(index) {
		const block = this.blocks.get(index);
		if (block === undefined) {
			if (!this.loading.has(index) && !this.#isOver)
				this.#load(index);
			return null;
		}
		this.blocks.delete(index);
		this.blocks.set(index, block);
		return block;
	}

	/**
	 * The block in which the line that contains an offset begins.
	 * @param {number} offset
	 */
	#blockOfLine(offset) {
		const index = Math.floor(offset / BLOCK);
		const block = this.block(index);
		if (block === null || offset >= block.end)
			return null;
		return block.lineAt(offset) < 0 && index > 0 ? this.block(index - 1) : block;
	}

	/**
	 * The line that contains an offset, with its style; null while it is being fetched.
	 * @param {number} offset
	 */
	lineAt(offset) {
		const block = this.#blockOfLine(offset);
		if (block === null)
			return null;
		const i = Math.min(block.lineAt(offset), block.starts.length - 2);
		return { start: block.starts[i], end: block.starts[i + 1], style: block.styleOf(i),
			/** @param {number} start @param {number} end */
			text: (start, end) => block.text(start, end) };
	}
}
