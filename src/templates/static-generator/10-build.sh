# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Builds the site into build-site/ of the checkout.
set -euo pipefail

. ../common/die.sh
. ../common/own-release.sh
need() { command -v "$1" >/dev/null || die "$1 is not installed on the runner: $2"; }

. ../common/release-path.sh
. ../common/reuse-release.sh
out=$PWD/build-site
url=${BASE_URL:-}
[[ -z $url || $url =~ ^https?:// ]] || die "BASE_URL must start with http:// or https://"
rm -rf -- "$out"
case ${GENERATOR:?choose hugo, jekyll or zola} in
hugo)
	need hugo "apt-get install hugo"
	hugo --minify --cacheDir "${SLIPWAY_CACHE:-$HOME}/hugo-cache" --destination "$out" ${url:+--baseURL "$url"} ;;
jekyll)
	if [ -f Gemfile ]; then
		need bundle "apt-get install bundler"
		bundle config set --local path "$HOME/bundle"
		bundle install
		jekyll=(bundle exec jekyll)
	else
		need jekyll "apt-get install jekyll"
		jekyll=(jekyll)
	fi
	JEKYLL_ENV=production "${jekyll[@]}" build --destination "$out" \
		${url:+--baseurl "$(sed -E 's|^https?://[^/]*||; s|/$||' <<<"$url")"} ;;
zola)
	need zola "see https://www.getzola.org/documentation/getting-started/installation/"
	zola build --output-dir "$out" ${url:+--base-url "$url"} ;;
*) die "GENERATOR must be hugo, jekyll or zola" ;;
esac
