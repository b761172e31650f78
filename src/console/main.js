// SPDX-License-Identifier: ISC
/** Starts the console: the session, then the page that the address names. */
import { Problem, onUnauthenticated } from './lib/api.js';
import { draw } from './lib/dom.js';
import * as drafts from './lib/draft.js';
import { ask, takeLink } from './lib/link.js';
import * as live from './lib/live.js';
import * as names from './lib/names.js';
import { Context, trouble } from './lib/page.js';
import { renew } from './lib/renew.js';
import * as router from './lib/router.js';
import { currentUser, may, onSignIn } from './lib/session.js';
import { frame, watchService } from './lib/shell.js';
import { pages } from './pages.js';
import { signIn } from './pages/signin.js';
import { t } from './texts.js';

/** @type {any} */
let user = null;
/** @type {Context | null} */
let context = null;

/**
 * Shows the page that the address names, or asks about a link that signs in.
 * @param {import('./lib/link.js').Link | null} link
 */
function show(link = takeLink()) {
	if (link !== null) {
		context?.close();
		ask(frame(null), link, user, () => show(null));
		return;
	}
	const place = router.place(pages);
	if (user === null && !place?.page.bare) {
		router.replace(`/sign-in?next=${encodeURIComponent(router.here())}`);
		return;
	}
	if (user !== null && place?.page === signIn && !place.query.has('code')) {
		location.replace(router.hrefWithin(place.query.get('next') ?? '/'));
		return;
	}
	const arriving = context === null;
	context?.close();
	const main = frame(place?.page.bare ? null : user);
	if (place === null) {
		draw(main, trouble(new Problem({ status: 404, code: 'not_found', detail: t.trouble.noPage })));
		return;
	}
	if (place.page.role !== undefined && !may(user, place.page.role)) {
		draw(main, trouble(new Problem({ status: 403, code: 'forbidden', detail: t.trouble.notAllowed })));
		return;
	}
	context = new Context(place, main, user);
	context.open({ announce: !arriving });
	scrollTo(0, 0);
}

async function start() {
	const link = takeLink();
	user = await currentUser();
	onUnauthenticated(() => user === null ? Promise.resolve(false) : renew(user.id));
	if (user !== null) {
		drafts.keepFor(user.id);
		await names.load();
		live.start();
		watchService(user);
	}
	onSignIn(async () => {
		if ((await currentUser())?.id !== user?.id)
			location.reload();
	});
	router.start(() => show());
	show(link);
}

start().catch((error) => {
	draw(frame(null), trouble(error instanceof Problem ? error : new Problem({ status: 1,
		detail: String(error) })));
});
