#!/bin/sh
# Runs the referee's cases against a fresh Sallyport, both inside the referee's namespace, where only loopback exists.
#
#   tests/blackbox/run.sh REFEREE_DIR [options of the referee's runner.py]
#
# Without --cat and --only those cases run that this version is to pass: CONNECT, and what the parser refuses. With either
# of them the runner selects. Needs root, for the namespaces. SALLYPORT_BUILD is the folder of the binaries, build/ of this
# tree when it is not set. The exit status is the runner's; 2 when it could not be started.
set -eu

fail() {
  echo "tests/blackbox/run.sh: $*" >&2
  exit 2
}

port_base=18080
selects=no
case_files=

# What the options mean for us; the runner gets them as they are.
read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --cat | --cat=* | --only | --only=*) selects=yes ;;
      --cases) case_files="$case_files${2:-}
" ;;
      --cases=*) case_files="$case_files${1#*=}
" ;;
      --base-port) port_base=${2:-} ;;
      --base-port=*) port_base=${1#*=} ;;
    esac
    shift
  done
  case $port_base in
    '' | *[!0-9]*) fail "--base-port wants a number" ;;
  esac
}

write_configuration() {
  ports="$port_base,$((port_base + 1))"
  echo "user: nobody"
  echo "confinement: required"
  echo "audit: $folder/audit.jsonl"
  echo "resolver: { nameservers: system, hosts_file: /etc/hosts }"
  echo "policies:"
  echo "  - name: referee"
  echo "    allow:"
  echo "      - host: allowed.test"
  echo "        ports: [$port_base, $((port_base + 1)), $((port_base + 2)), $((port_base + 3))]"
  echo "        resolves_to: [127.0.0.1/32]"
  for name in meta priv v6meta mapped nat64 zero mixed ll; do
    echo "      - $name.test:$ports"
  done
  echo "      - nx.test:$((port_base + 1))"
  echo "egress:"
  echo "  - { listen: \"127.0.0.1:3128\", policy: referee }"
}

# A regular expression of the ids that this version is to pass, in the files of $case_files (default: the public ones).
ids_so_far() {
  printf '%s' "${case_files:-$referee/cases/public.jsonl}" | python3 -c '
import json, re, sys

CONNECT = {"connect", "target", "port", "resolved", "preest", "robust"}
CONNECT_KINDS = {"preest", "preest-rst", "half", "rstmid", "duplex"}
PARSER = {"request-line", "headers", "framing", "absolute"}

def is_connect(case):
    first = next((item for item in case["send"] if isinstance(item, str)), "")
    return first.startswith("CONNECT ") or case["kind"] in CONNECT_KINDS

def is_refused(case):
    return case["kind"] == "raw" and case["expect"][:1] == ["reject-400"]

ids = []
for name in sys.stdin.read().splitlines():
    for case in map(json.loads, open(name)):
        here = case["cat"] in CONNECT and is_connect(case) or case["cat"] in PARSER and is_refused(case)
        if case["surface"] == "egress" and here:
            ids.append(re.escape(case["id"]))
print("^(%s)$" % "|".join(ids))
'
}

# Inside the namespace, where this shell is process 1: whatever is left dies with it.
run_inside() {
  folder=$1 binary=$2 referee=$3
  shift 3
  mkfifo "$folder/ready"
  "$binary" run --config "$folder/sallyport.yaml" --ready-fd 3 3>"$folder/ready" 2>"$folder/log" &
  sallyport=$!
  if ! read -r _ <"$folder/ready"; then
    echo "tests/blackbox/run.sh: Sallyport did not start:" >&2
    cat "$folder/log" >&2
    exit 2
  fi
  status=0
  python3 "$referee/runner.py" --all-addresses --egress 127.0.0.1:3128 --pid "$sallyport" "$@" || status=$?
  if ! kill -TERM "$sallyport" 2>/dev/null; then
    echo "tests/blackbox/run.sh: Sallyport ended by itself:" >&2
    tail -n 20 "$folder/log" >&2
  fi
  wait "$sallyport" || true
  exit "$status"
}

if [ "${1:-}" = --inside ]; then
  shift
  run_inside "$@"
fi

[ $# -ge 1 ] || fail "which folder is the referee's? usage: run.sh REFEREE_DIR [options of runner.py]"
[ "$(id -u)" -eq 0 ] || fail "the referee's namespace needs root"
[ -x "$1/ns.sh" ] || fail "$1 is not the referee's folder: it has no ns.sh"
referee=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
build=${SALLYPORT_BUILD:-$here/../../build}
[ -x "$build/sallyport" ] || fail "$build/sallyport is not there: run make, or set SALLYPORT_BUILD"
binary=$(cd "$build" && pwd)/sallyport
read_options "$@"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
write_configuration >"$folder/sallyport.yaml"
if [ "$selects" = no ]; then
  only=$(ids_so_far) || fail "the cases could not be read"
  set -- --only "$only" "$@"
fi
status=0
TMPDIR=$folder "$referee/ns.sh" "$here/run.sh" --inside "$folder" "$binary" "$referee" "$@" || status=$?
exit "$status"
