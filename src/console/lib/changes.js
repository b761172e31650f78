// SPDX-License-Identifier: ISC
/** The commits between what is live and what is about to be deployed. */
import { el } from './dom.js';
import { subject } from './deployments.js';
import { inOrder } from './text.js';
import { ago } from './time.js';
import { t } from '../texts.js';

/** @typedef {import('./types.js').GitCommit} Commit */
/** @typedef {{ commitHash: string | null }} Live */

/**
 * @param {Commit[]} commits of the branch, newest first
 * @param {string} chosen a hash; empty: the newest
 * @param {Live | null} live
 * @returns {{ known: boolean, commits: Commit[] }} known: whether the live commit
 *   is among the branch's commits
 */
function between(commits, chosen, live) {
	const from = chosen === '' ? 0 : commits.findIndex((one) => one.hash.startsWith(chosen));
	const to = commits.findIndex((one) => one.hash === live?.commitHash);
	if (from < 0 || to < 0)
		return { known: false, commits: from < 0 ? [] : commits.slice(from, from + 10) };
	return { known: true, commits: commits.slice(from, Math.max(from, to)) };
}

/** @param {Commit} one */
function row(one) {
	return el('li', { 'data-key': one.hash }, el('code', { title: one.hash }, one.hash.slice(0, 8)),
		el('span', { class: 'subject' }, subject(one.message)),
		el('span', { class: 'faint' }, el('bdi', null, inOrder(one.authorName ?? '')), ', ',
			one.committedAt !== null && ago(one.committedAt)));
}

/**
 * @param {Commit[] | null} commits null: not loaded yet
 * @param {string} chosen
 * @param {Live | null} live
 */
export function changes(commits, chosen, live) {
	if (commits === null)
		return el('p', { class: 'faint' }, t.loading);
	const { known, commits: list } = between(commits, chosen, live);
	const text = live === null ? t.changes.first : known ? t.changes.count(list.length) : t.changes.unknown;
	return [el('p', { class: 'faint' }, text), el('ol', { class: 'commits' }, list.slice(0, 30).map(row))];
}
