// SPDX-License-Identifier: ISC
/** The SSH key with which runners read the repository of one project. */
import { get, Problem, put, remove } from '../lib/api.js';
import { confirmLoss } from '../lib/dialog.js';
import { draw, el } from '../lib/dom.js';
import { ago } from '../lib/time.js';
import { toast } from '../lib/toast.js';
import { t } from '../texts.js';

/** @typedef {import('../lib/types.js').DeployKey} DeployKey */
/** @typedef {import('../lib/types.js').Project} Project */
/** @typedef {import('../lib/page.js').Context} Context */

/** An address over SSH, in either form. */
const SSH = /^(?:ssh:\/\/|[^/:@]+@[^/:]+:)/i;

/**
 * @param {string} path
 * @returns {Promise<DeployKey | null>} null if the project has none
 */
async function find(path) {
	try {
		return await get(path);
	} catch (error) {
		if (error instanceof Problem && error.status === 404)
			return null;
		throw error;
	}
}

/** @param {string} text */
async function copy(text) {
	await navigator.clipboard.writeText(text);
	toast(t.deployKey.copied);
}

/** The part of the card that changes with the key. */
class Card {
	/** @param {Project} project @param {Context} context */
	constructor(project, context) {
		this.path = `/projects/${project.id}/deploy-key`;
		this.context = context;
		this.place = el('div');
		find(this.path).then((key) => this.show(key), (error) => toast(String(error.message), 'bad'));
	}

	/** @param {DeployKey | null} key */
	show(key) {
		draw(this.place, key === null ? this.none() : this.one(key));
	}

	create() {
		return this.context.run(async () => this.show(await put(this.path, undefined)));
	}

	async replace() {
		if (await confirmLoss(t.deployKey.replaceTitle, t.deployKey.replaceText, t.deployKey.replace))
			await this.create();
	}

	async drop() {
		if (await confirmLoss(t.deployKey.deleteTitle, t.deployKey.deleteText, t.delete))
			await this.context.run(async () => {
				await remove(this.path);
				this.show(null);
			});
	}

	none() {
		return [el('p', null, t.deployKey.none), el('div', { class: 'actions' },
			el('button', { 'data-key': 'create', onclick: () => this.create() }, t.deployKey.create))];
	}

	/** @param {DeployKey} key */
	one({ publicKey, fingerprint, createdAt }) {
		const fact = (/** @type {string} */ label, /** @type {import('../lib/dom.js').Child} */ value) =>
			[el('dt', null, label), el('dd', null, value)];
		return [el('dl', { class: 'facts' }, fact(t.deployKey.publicKey, el('code', { class: 'secret' }, publicKey)),
			fact(t.deployKey.fingerprint, el('code', null, fingerprint)), fact(t.deployKey.created, ago(createdAt))),
		el('div', { class: 'actions' },
			el('button', { 'data-key': 'copy', onclick: () => copy(publicKey) }, t.copy),
			el('button', { 'data-key': 'replace', onclick: () => this.replace() }, t.deployKey.replace),
			el('button', { 'data-key': 'delete', class: 'danger', onclick: () => this.drop() }, t.delete))];
	}
}

/**
 * Nothing for a repository that is not cloned over SSH.
 * @param {Project} project
 * @param {Context} context
 */
export function deployKeyCard(project, context) {
	return SSH.test(project.repository) && context.keep('deploy-key', () =>
		el('section', { class: 'card', id: 'deploy-key' }, el('h2', null, t.deployKey.title),
			el('p', { class: 'faint' }, t.deployKey.lead), new Card(project, context).place));
}
