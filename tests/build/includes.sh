#!/bin/bash
# The direction of includes holds by construction: a file that breaks it does not compile, one that keeps it does.
set -u
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cp -r Makefile shared policy parent child "$here"/
cd "$here" || exit 1

passed=0 failed=0
verdict() { # WHAT OK
  if [ "$2" = yes ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
  fi
}

# A file in FOLDER that includes HEADER: does it build?
builds() { # FOLDER HEADER
  printf '#include "%s"\n' "$2" >"$1/probe_of_includes.c"
  make --no-print-directory BUILD=build "build/obj/$1/probe_of_includes.o" >probe.log 2>&1
  local status=$?
  rm -f "$1/probe_of_includes.c"
  return $status
}

must_build() { # FOLDER HEADER
  local ok=no
  if builds "$1" "$2"; then
    ok=yes
  else
    cat probe.log
  fi
  verdict "a file in $1/ may include $2" $ok
}
must_fail() { # FOLDER HEADER REASON
  local ok=no
  if ! builds "$1" "$2" && grep -q "$3" probe.log; then
    ok=yes
  fi
  verdict "a file in $1/ must not be able to include $2" $ok
}

must_build parent shared/messages.h
must_build parent policy/egress/decide.h
must_build parent parent/audit.h
must_build child/worker shared/messages.h
must_build child/worker policy/egress/host.h
must_build child/worker child/start.h
must_build policy/egress shared/address.h

absent='No such file'
must_fail parent child/start.h "$absent"
must_fail parent child/worker/http_head.h "$absent"
must_fail child/worker parent/audit.h "$absent"
must_fail child parent/books.h "$absent"
must_fail policy/egress parent/audit.h "$absent"
must_fail policy/egress child/start.h "$absent"
must_fail shared policy/egress/host.h "$absent"
must_fail parent ../child/start.h 'would evade'
must_fail child/worker ../../parent/audit.h 'would evade'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
