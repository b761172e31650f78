// SPDX-License-Identifier: ISC
// An authorization server with oidc-provider and the paths of Gitea, and
// /api/v1/user for its access tokens.
// usage: node oidc.mjs CONFIG
// CONFIG is JSON: {socket, issuer, clients, accounts: {login: {id, …}}, ttl}.
import fs from 'node:fs';
import Provider from 'oidc-provider';

const config = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));

function account(login) {
	const found = config.accounts[login];
	return found && {
		accountId: login,
		claims: () => ({ sub: String(found.id), name: found.full_name }),
	};
}

const provider = new Provider(config.issuer, {
	clients: config.clients,
	cookies: { keys: ['a key of the tests'] },
	features: { revocation: { enabled: true } },
	findAccount: (ctx, login) => account(login),
	issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
	pkce: { methods: ['S256'], required: () => true },
	routes: {
		authorization: '/login/oauth/authorize',
		token: '/login/oauth/access_token',
	},
	scopes: ['openid', 'offline_access', 'read:user', 'write:repository'],
	ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 7200,
		Interaction: 600, RefreshToken: 7200, Session: 3600, ...config.ttl },
});
provider.proxy = true;

function refuse(ctx, message) {
	ctx.status = 401;
	ctx.body = { message, url: config.issuer + '/api/swagger' };
}

// Responds to GET /user as Gitea does.
provider.use(async (ctx, next) => {
	if (ctx.path !== '/api/v1/user')
		return next();
	const [, value] = /^(?:Bearer|token) (\S+)$/i.exec(
		ctx.get('authorization')) || [];
	const token = value && await provider.AccessToken.find(value);
	if (!token || !token.scope.split(' ').includes('read:user'))
		return refuse(ctx, 'token is required');
	const { id, ...rest } = config.accounts[token.accountId];
	ctx.body = { id, login: token.accountId, email: '', full_name: '',
		avatar_url: config.issuer + '/avatars/' + id, ...rest };
});

provider.listen(config.socket, () => {
	fs.chmodSync(config.socket, 0o777);
	console.log('is ready');
});
