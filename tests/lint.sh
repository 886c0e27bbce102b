#!/bin/bash
# `make lint`: two compilers with all warnings, clang-tidy, cppcheck, and the rules of the house. Ends with a count.
set -u
cd "$(dirname "$0")/.." || exit 1
make=${MAKE:-make} jobs=${JOBS:-2}
failed=()

step() { # NAME COMMAND...
  local name=$1
  shift
  echo "== $name"
  "$@" || failed+=("$name")
}

sources() {
  find shared policy parent child tests -name '*.c' -not -path 'tests/fuzz/*' | sort
}
all_files() {
  find shared policy parent child tests packaging .ci -type f \
    \( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -perm -u+x \) -not -path '*/__pycache__/*' | sort
}

compile_with() { # COMPILER FLAGS
  $make --no-print-directory -j"$jobs" objects DEPS= CC="$1" BUILD="build/lint-$1" CFLAGS="$2"
}

common_flags='-Wformat-security -Wundef -Wpointer-arith -Wmissing-declarations -Wimplicit-fallthrough'
gcc_flags="$common_flags -Wduplicated-cond -Wold-style-definition"
clang_flags="$common_flags -Wunreachable-code -Wshorten-64-to-32"

# The flags that each side is compiled with, as far as they matter for reading it.
flags_of() {
  local side=${1%%/*}
  echo "-std=gnu11 -D_GNU_SOURCE -DSALLYPORT_VERSION=\"0\" -DSALLYPORT_LIBEXECDIR=\"/\" -Ibuild/lint-clang/include/$side"
}

tidy() {
  sources | xargs -P "$jobs" -I{} bash -c 'tidy_one {}'
}
# A file that was clean is not looked at again until it, or something that it includes, has changed.
tidy_one() {
  local clean=build/lint-clang/tidy/$1.clean needs
  needs=$(sed -n '1,/^$/ s/^[^:]*: *//; s/\\$//p' "build/lint-clang/obj/${1%.c}.d" 2>/dev/null | tr -s ' \n' ' ')
  # shellcheck disable=SC2086 # words
  if [ -e "$clean" ] && [ -z "$(find .clang-tidy $1 $needs -newer "$clean" -print -quit 2>&1)" ]; then
    return 0
  fi
  # shellcheck disable=SC2046 # words
  clang-tidy --quiet "$1" -- $(flags_of "$1") 2>&1 | grep -v -e '^[0-9]* warnings\? generated' -e '^Suppressed '
  [ "${PIPESTATUS[0]}" -eq 0 ] && mkdir -p "${clean%/*}" && touch "$clean"
}
export -f tidy_one flags_of

cpp_check() {
  local side
  for side in shared policy parent child; do
    cppcheck --quiet --std=c11 --language=c --enable=warning,portability,performance --inline-suppr --error-exitcode=1 \
      --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches --suppress=unknownMacro \
      -D__x86_64__=1 -D_GNU_SOURCE -DSALLYPORT_VERSION='"0"' -DSALLYPORT_LIBEXECDIR='"/"' -I"build/lint-clang/include/$side" \
      -j "$jobs" "$side" || return 1
  done
}

refused_calls() {
  ! grep -rnE '\b(strcpy|strcat|stpcpy|v?sprintf|gets|atoi|atol|atoll|atof|alloca|strtok|strncpy|strncat)[[:space:]]*\(' \
    shared policy parent child tests --include='*.[ch]'
}

long_files() {
  all_files | xargs wc -l | awk '$2 != "total" && $1 > 500 { print $2 ": " $1 " lines, at most 500"; bad = 1 } END { exit bad }'
}

unfinished() {
  ! all_files | grep -v '^tests/lint.sh$' | xargs grep -nwE 'TODO|FIXME|XXX|HACK'
}

formatted() {
  find shared policy parent child tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
}

scripts() {
  all_files | while read -r file; do
    head -1 "$file" | grep -qE '^#!/bin/(ba)?sh' && echo "$file"
  done | xargs shellcheck
}

pythons() {
  all_files | while read -r file; do
    case $file in
    *.py) echo "$file" ;;
    *) head -1 "$file" | grep -q '^#!.*python3' && echo "$file" ;;
    esac
  done | xargs python3 -c 'import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name, encoding="utf-8").read(), name)'
}

step 'gcc, all warnings' compile_with gcc "$gcc_flags"
step 'clang, all warnings' compile_with clang "$clang_flags"
step 'clang-tidy' tidy
step 'cppcheck' cpp_check
step 'refused calls' refused_calls
step 'files over 500 lines' long_files
step 'unfinished work' unfinished
step 'clang-format' formatted
step 'shellcheck' scripts
step 'Python syntax' pythons

for name in "${failed[@]}"; do
  echo "failed: $name"
done
echo "$((10 - ${#failed[@]})) passed, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ]
