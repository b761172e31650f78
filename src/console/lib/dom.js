// SPDX-License-Identifier: ISC
/**
 * Elements from descriptions, and a view drawn again into a page that exists.
 * Views are functions from data to elements; patch() moves only what differs
 * into the document, so that focus, scroll position and typed text stay.
 */

/**
 * What an element can contain; null and false leave no trace.
 * @typedef {Node | string | number | null | undefined | false | readonly any[]} Child
 * @typedef {Record<string, any>} Props
 */

const SVG = 'http://www.w3.org/2000/svg';
const HANDLERS = /** @type {const} */ (['onclick', 'oninput', 'onchange', 'onsubmit', 'onkeydown',
	'onfocus', 'onblur', 'ontoggle', 'onpointerdown', 'onpointerup', 'ondragstart',
	'ondragover', 'ondragleave', 'ondragend', 'ondrop', 'onclose', 'onmousedown']);

/**
 * @param {Element} node
 * @param {string} name
 * @param {any} value a handler, or an attribute: true is an empty one, false and null none
 */
function setProp(node, name, value) {
	if (typeof value === 'function')
		/** @type {any} */ (node)[name] = value;
	else if (value !== null && value !== undefined && value !== false)
		node.setAttribute(name, value === true ? '' : String(value));
}

/**
 * @param {Node} node
 * @param {Child} child
 */
function append(node, child) {
	if (Array.isArray(child))
		child.forEach((one) => append(node, one));
	else if (child instanceof Node)
		node.appendChild(child);
	else if (child !== null && child !== undefined && child !== false)
		node.appendChild(document.createTextNode(String(child)));
}

/**
 * @template {Element} T
 * @param {T} node
 * @param {Props | null} props
 * @param {Child[]} children
 * @returns {T}
 */
function fill(node, props, children) {
	for (const [name, value] of Object.entries(props ?? {}))
		setProp(node, name, value);
	append(node, children);
	return node;
}

/**
 * An element: el('a', { href: '/x', onclick: f }, 'text', child, [children]).
 * `data-key` identifies it among its siblings when the list changes.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props = null, ...children) {
	return fill(document.createElement(tag), props, children);
}

/**
 * An element of SVG.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, props = null, ...children) {
	return fill(document.createElementNS(SVG, tag), props, children);
}

/**
 * @param {Node} node
 * @returns {string | null}
 */
function keyOf(node) {
	return node instanceof Element ? node.getAttribute('data-key') : null;
}

/**
 * Whether `old` can become `wanted` in place.
 * @param {Node} old
 * @param {Node} wanted
 */
function alike(old, wanted) {
	return old.nodeName === wanted.nodeName && keyOf(old) === keyOf(wanted);
}

/**
 * @param {Element} old
 * @param {Element} wanted
 */
function patchAttributes(old, wanted) {
	for (const { name } of [...old.attributes])
		// the user opens and closes these
		if (!wanted.hasAttribute(name) && !(name === 'open' && old.matches('details, dialog')))
			old.removeAttribute(name);
	for (const { name, value } of wanted.attributes)
		if (old.getAttribute(name) !== value)
			old.setAttribute(name, value);
	for (const name of HANDLERS)
		/** @type {any} */ (old)[name] = /** @type {any} */ (wanted)[name];
}

/**
 * The child of `parent` that becomes `wanted`, from `next` onwards.
 * @param {Node} wanted
 * @param {ChildNode | null} next
 */
function find(wanted, next) {
	if (keyOf(wanted) === null)
		return next !== null && alike(next, wanted) ? next : null;
	for (let at = next; at !== null; at = at.nextSibling)
		if (alike(at, wanted))
			return at;
	return null;
}

/**
 * @param {Node} parent
 * @param {ChildNode[]} wanted
 */
function patchChildren(parent, wanted) {
	let next = parent.firstChild;
	for (const child of wanted) {
		const old = find(child, next);
		if (old === null) {
			parent.insertBefore(child, next);
			continue;
		}
		if (old === next)
			next = old.nextSibling;
		else
			parent.insertBefore(old, next);
		patch(old, child);
	}
	while (next !== null) {
		const after = next.nextSibling;
		next.remove();
		next = after;
	}
}

/**
 * Makes `old`, which is in the document, look like `wanted`, an element of the
 * same kind. An element with `data-kept` stays as it is.
 * @param {Node} old
 * @param {Node} wanted
 */
export function patch(old, wanted) {
	if (!(old instanceof Element) || !(wanted instanceof Element)) {
		if (old.nodeValue !== wanted.nodeValue)
			old.nodeValue = wanted.nodeValue;
		return;
	}
	if (old.hasAttribute('data-kept'))
		return;
	patchAttributes(old, wanted);
	patchChildren(old, [...wanted.childNodes]);
}

/**
 * Makes the children of `parent` look like `children`.
 * @param {Element} parent
 * @param {...Child} children
 */
export function draw(parent, ...children) {
	const wanted = document.createDocumentFragment();
	append(wanted, children);
	patchChildren(parent, [...wanted.childNodes]);
}
