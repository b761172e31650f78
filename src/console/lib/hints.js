// SPDX-License-Identifier: ISC
/**
 * Hints that something may have changed. One tab of the browser leads: it listens to
 * the service's stream of events and passes a hint to all tabs. The stream names
 * deployments only, so the leader also hints at intervals, which are short while it
 * has no stream. A tab that becomes visible takes the lead, as the browser slows
 * down those that are hidden.
 */
import { Alarm } from './alarm.js';

const LOCK = 'slipway-live';
const POLL_MS = 2500; // without a stream
const IDLE_MS = 10000; // with one
const LEAST_MS = 250; // collects events that come together
const RECONNECT_MS = 10000;

const channel = new BroadcastChannel('slipway');

/**
 * What a hint causes in this tab; resolves to how many attempts in a row have failed.
 * @type {() => Promise<number>}
 */
let handler = async () => 0;

/** Passes a hint to all tabs; resolves when this tab has used it. */
export function hint() {
	channel.postMessage('changed');
	return handler();
}

/** The stream of events; rings when a deployment has another state, and when it begins. */
class Stream {
	/** @param {Alarm} alarm */
	constructor(alarm) {
		this.alarm = alarm;
		/** What the last event of each unfinished deployment said.
		 * @type {Map<number, string>} */
		this.known = new Map();
		this.connect();
	}

	connect() {
		this.tried = performance.now();
		this.source = new EventSource('/api/events');
		this.source.onopen = () => this.alarm.ring();
		this.source.onerror = () => this.alarm.ring();
		this.source.addEventListener('deployment', (event) => this.#receive(JSON.parse(event.data)));
	}

	/** @param {{ id: number, status: string, version: number }} event */
	#receive({ id, status, version }) {
		const state = `${status} ${version}`;
		if (this.known.get(id) === state)
			return; // its log has grown
		if (status === 'pending' || status === 'running')
			this.known.set(id, state);
		else
			this.known.delete(id);
		this.alarm.ring();
	}

	get isOpen() {
		return this.source?.readyState === EventSource.OPEN;
	}

	/** Connects again after an error that the browser takes for final. */
	revive() {
		if (this.source?.readyState === EventSource.CLOSED
		    && performance.now() - (this.tried ?? 0) > RECONNECT_MS)
			this.connect();
	}

	close() {
		this.source?.close();
	}
}

/** @type {AbortController | null} */
let leading = null;
let queued = new AbortController();

/**
 * Leads until another tab takes the lead.
 * @param {AbortSignal} signal
 */
async function lead(signal) {
	const alarm = new Alarm();
	const stream = new Stream(alarm);
	const online = () => alarm.ring();
	signal.addEventListener('abort', () => {
		stream.close();
		alarm.ring();
	});
	addEventListener('online', online, { signal });
	document.addEventListener('visibilitychange', online, { signal });
	while (!signal.aborted) {
		const failures = await hint();
		await alarm.wait(stream.isOpen ? IDLE_MS : Math.min(POLL_MS * 2 ** failures, IDLE_MS), LEAST_MS);
		if (failures === 0)
			stream.revive();
	}
}

/**
 * Waits for the lead, or takes it; when another tab takes it, waits again.
 * @param {{ steal?: boolean }} [options]
 */
async function stand({ steal = false } = {}) {
	queued.abort();
	queued = new AbortController();
	try {
		await navigator.locks.request(LOCK, steal ? { steal } : { signal: queued.signal }, () => {
			leading = new AbortController();
			return lead(leading.signal);
		});
	} catch {
		if (leading === null)
			return; // this tab asks for the lead in another way, or closes
		leading.abort();
		leading = null;
		stand();
	}
}

/**
 * Begins to give hints; called once.
 * @param {() => Promise<number>} changed
 */
export function start(changed) {
	handler = changed;
	channel.onmessage = () => handler();
	document.addEventListener('visibilitychange', () => {
		if (document.visibilityState === 'visible' && leading === null)
			stand({ steal: true });
	});
	stand({ steal: document.visibilityState === 'visible' });
}
