#!/bin/sh
# Installs what is missing, and only that. Says what and how before it does.
#   packaging/deps.sh SET...     SET: build | run | test | lint (each stands for itself; `build test` asks for both)
# Debian 12 and 13 by apt, Fedora by dnf. Needs root or sudo for the installation, and nothing when all is there.
# shellcheck disable=SC2034,SC2154 # the lists are looked up by name, family and set
# shellcheck disable=SC2046,SC2086 # and split into words
set -eu

# What each set needs. "package" is asked of the package manager; "command:package" is satisfied by the command,
# wherever it came from.
debian_build="gcc:gcc make:make pkg-config:pkg-config libc6-dev libevent-dev libseccomp-dev libcap-dev libc-ares-dev
  libyaml-dev libjansson-dev libpsl-dev"
debian_run="python3:python3 curl:curl"
debian_test="python3:python3 curl:curl git:git wget:wget node:nodejs npm:npm openssl:openssl strace:strace
  tinyproxy:tinyproxy-bin ip:iproute2 setpriv:util-linux ps:procps libcriterion-dev ca-certificates"
debian_lint="clang:clang clang-tidy:clang-tidy clang-format:clang-format cppcheck:cppcheck shellcheck:shellcheck
  libclang-rt-dev libcriterion-dev"

fedora_build="gcc:gcc make:make pkg-config:pkgconf-pkg-config glibc-devel libevent-devel libseccomp-devel libcap-devel
  c-ares-devel libyaml-devel jansson-devel libpsl-devel"
fedora_run="python3:python3 curl:curl"
fedora_test="python3:python3 curl:curl git:git-core wget:wget node:nodejs npm:nodejs-npm openssl:openssl strace:strace
  tinyproxy:tinyproxy ip:iproute setpriv:util-linux ps:procps-ng criterion-devel ca-certificates libasan libubsan"
fedora_lint="clang:clang clang-tidy:clang-tools-extra clang-format:clang-tools-extra cppcheck:cppcheck
  shellcheck:ShellCheck compiler-rt criterion-devel"

complain() {
  echo "deps.sh: $*" >&2
}

usage() {
  complain "usage: packaging/deps.sh build|run|test|lint ..."
  exit 2
}

choose_manager() {
  if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    family=debian
  elif command -v rpm >/dev/null && command -v dnf >/dev/null; then
    family=fedora
  else
    complain "this is neither Debian nor Fedora; install the equivalents of:"
    for set in "$@"; do
      eval "complain \"  $set: \$(echo \$debian_$set)\""
    done
    complain "and run make with DEPS= to skip this check"
    exit 1
  fi
}

has_package() {
  if [ "$family" = debian ]; then
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
  else
    rpm -q --quiet --whatprovides "$1"
  fi
}

# Commands of the superuser are looked for too: an ordinary user's PATH may lack them.
has_command() {
  PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1" >/dev/null
}

find_missing() {
  missing=
  for set in "$@"; do
    eval "wanted=\$${family}_$set"
    for entry in $wanted; do
      package=${entry##*:}
      case $entry in
      *:*) has_command "${entry%%:*}" || missing="$missing $package" ;;
      *) has_package "$package" || missing="$missing $package" ;;
      esac
    done
  done
  missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ' | sed 's/^ *//; s/ *$//')
}

[ $# -gt 0 ] || usage
for set in "$@"; do
  case $set in build | run | test | lint) ;; *) usage ;; esac
done
choose_manager "$@"
find_missing "$@"
[ -n "$missing" ] || exit 0

if [ "$family" = debian ]; then
  refresh="apt-get update"
  install="apt-get install -y --no-install-recommends $missing"
else
  refresh=:
  install="dnf install -y --setopt=install_weak_deps=False $missing"
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=sudo
  else
    complain "these packages are missing and this user cannot install them: $missing"
    complain "as root, type:"
    [ "$refresh" = : ] || complain "  $refresh"
    complain "  $install"
    exit 1
  fi
fi

echo "deps.sh: missing: $missing"
echo "deps.sh: installing with: ${as_root:+$as_root }$install"
run() {
  if [ "$family" = debian ]; then
    $as_root env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
  else
    $as_root "$@" </dev/null
  fi
}
# The package lists may be old or absent: fetched once, and only when the installation does not work with those here.
[ "$family" = debian ] && ! run apt-get install -y -qq --no-install-recommends --simulate $missing >/dev/null 2>&1 &&
  run apt-get update
if ! run $install; then
  [ "$family" = debian ] || exit 1
  run apt-get update
  run $install
fi
find_missing "$@"
[ -z "$missing" ] || {
  complain "still missing after the installation: $missing"
  exit 1
}
