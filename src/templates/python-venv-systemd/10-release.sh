# SPDX-License-Identifier: ISC
# shellcheck shell=bash
# Copies the checkout and creates its virtual environment in the final place: it
# would not work after a move.
set -euo pipefail
umask 022

. ../common/die.sh
. ../common/need.sh
. ../common/own-release.sh

# A tag such as v1.2.3 is 1.2.3; five commits later it is 1.2.4.dev5, as
# setuptools_scm has it.
scm_version() {
	local number='([0-9]+(\.[0-9]+)*((a|b|rc|\.post|\.dev)[0-9]+)?)' tag text last
	local hash=${SLIPWAY_COMMIT:0:9}
	text=$(git describe --tags --long --match '*[0-9]*' 2>/dev/null || true)
	tag=${SLIPWAY_TAG:-}
	[ -n "$tag" ] || tag=${text%-*-*}
	if ! [[ $tag =~ ^([A-Za-z][A-Za-z0-9._]*[-_/])?v?$number$ ]]; then
		echo "0.1.dev$(git rev-list --count HEAD 2>/dev/null || echo 0)${hash:++g$hash}"
		return
	fi
	tag=${BASH_REMATCH[2]}
	text=${text%-*}
	text=${text##*-}
	if [ -n "${SLIPWAY_TAG:-}" ] || [ "$text" = 0 ]; then
		echo "$tag"
	elif [[ $tag =~ ^(.*[.])?([0-9]+)$ ]]; then
		last=$((10#${BASH_REMATCH[2]} + 1))
		echo "${BASH_REMATCH[1]}$last.dev$text${hash:++g$hash}"
	else
		echo "$tag${hash:++$text.g$hash}"
	fi
}

# Runs pip with what version tools would read from .git, which the release does not
# have.  Only the project may see that: the variables count for each package that
# is built, and a package of another project would get this one's version.
own_pip() {
	export SETUPTOOLS_SCM_PRETEND_VERSION=${SETUPTOOLS_SCM_PRETEND_VERSION:-$version}
	export PBR_VERSION=${PBR_VERSION:-$version}
	export PDM_BUILD_SCM_VERSION=${PDM_BUILD_SCM_VERSION:-$version}
	export POETRY_DYNAMIC_VERSIONING_BYPASS=${POETRY_DYNAMIC_VERSIONING_BYPASS:-$version}
	export UV_DYNAMIC_VERSIONING_BYPASS=${UV_DYNAMIC_VERSIONING_BYPASS:-$version}
	pip "$@"
}
pip() { venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }
# Whether requirements.txt installs the project itself, as "." or "-e .[extra]" do.
names_project() {
	grep -Eq '^[[:space:]]*((-e|--editable)[[:space:]=]*)?\./?(\[[^]]*\])?[[:space:]]*([;#].*)?$' requirements.txt
}

. ../common/release-path.sh
. ../common/reuse-release.sh
need rsync rsync
need python3 python3
python3 -c 'import ensurepip' 2>/dev/null ||
	die "python3 on the runner has no venv: apt-get install python3-venv"
[ ! -e venv ] || die "the repository has a venv: remove it, a virtual environment works only where it was made"
version=$(scm_version)
. ../common/make-release.sh
python3 -m venv venv
if [ -f requirements.txt ] && names_project; then
	(own_pip install -r requirements.txt)
elif [ -f requirements.txt ]; then
	pip install -r requirements.txt
elif [ -f pyproject.toml ]; then
	(own_pip wheel --no-deps --wheel-dir "$HOME/wheel" .)
	pip install "$HOME"/wheel/*.whl
else
	echo "neither requirements.txt nor pyproject.toml: no packages to install"
fi
pip check
venv/bin/python --version
