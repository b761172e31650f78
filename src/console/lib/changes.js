// SPDX-License-Identifier: ISC
/** The commits between what is live and what is about to be deployed. */
import { el } from './dom.js';
import { commit, subject } from './deployments.js';
import { userName } from './names.js';
import { inOrder } from './text.js';
import { ago } from './time.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').GitCommit} Commit */
/** @typedef {{ commitHash: string | null, commitMessage: string | null, createdBy: number | null,
 *   finishedAt: string | null }} Live */

const MOST = 30;

/**
 * What a deployment would change: `more` commits than what is live, or `fewer`, which
 * it takes back; `unknown` if what is live is not among the branch's commits.
 * @param {Commit[]} commits of the branch, newest first
 * @param {string} chosen a hash; empty: the newest
 * @param {Live | null} live
 * @returns {{ how: 'first' | 'same' | 'more' | 'fewer' | 'unknown', commits: Commit[] }}
 */
export function between(commits, chosen, live) {
	const from = chosen === '' ? 0 : commits.findIndex((one) => one.hash.startsWith(chosen));
	const to = live === null ? -1 : commits.findIndex((one) => one.hash === live.commitHash);
	if (from < 0 || to < 0)
		return { how: live === null ? 'first' : 'unknown', commits: from < 0 ? [] : commits.slice(from, from + 10) };
	if (from === to)
		return { how: 'same', commits: [] };
	return from < to ? { how: 'more', commits: commits.slice(from, to) }
		: { how: 'fewer', commits: commits.slice(to, from) };
}

/** @param {Commit} one */
function row(one) {
	return el('li', { 'data-key': one.hash }, el('code', { title: one.hash }, one.hash.slice(0, 8)),
		el('span', { class: 'subject' }, subject(one.message)),
		el('span', { class: 'faint' }, el('bdi', null, inOrder(one.authorName ?? '')), ', ',
			one.committedAt !== null && ago(one.committedAt)));
}

/**
 * What is live now.
 * @param {Live} live
 */
function liveLine(live) {
	return el('p', { class: 'live-now' }, el('span', { class: 'faint' }, t.changes.live), ' ',
		commit(live.commitHash, live.commitMessage), ' ',
		el('span', { class: 'faint' }, userName(live.createdBy), live.finishedAt !== null && [', ', ago(live.finishedAt)]));
}

/**
 * @param {Commit[] | null} commits null: not loaded yet
 * @param {string} chosen
 * @param {Live | null} live
 */
export function changes(commits, chosen, live) {
	if (commits === null)
		return [live !== null && liveLine(live), el('p', { class: 'faint' }, t.loading)];
	const { how, commits: list } = between(commits, chosen, live);
	return [live !== null && liveLine(live),
		el('p', { class: how === 'fewer' ? 'notice pending' : 'faint' }, t.changes.texts[how](list.length)),
		list.length > 0 && el('ol', { class: how === 'fewer' ? 'commits undone' : 'commits' }, list.slice(0, MOST).map(row)),
		list.length > MOST && el('p', { class: 'faint' }, t.changes.more(list.length - MOST))];
}
