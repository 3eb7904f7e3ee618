#!/bin/sh
# Set up .venv from requirements.lock if it is missing or out of date, then do one job in it:
#   ./run.sh demo     the worked example: agent logs to training rows and a selection-bias report
#   ./run.sh test     every check that CI runs (further words go to pytest)
#   ./run.sh setup    only set up
#   ./run.sh lock     pin the dependencies again (needs uv)
set -eu
cd "$(dirname "$0")"

fail() { echo "run.sh: $*" >&2; exit 1; }

setup() {
    # up to where pyproject.toml only configures checks
    wanted=$( (pwd; cat requirements.lock; sed '/^\[tool\.pytest/,$d' pyproject.toml) | cksum)
    [ "$(cat .venv/ready 2>/dev/null)" = "$wanted" ] && return
    echo "run.sh: setting up .venv (once)" >&2
    rm -rf .venv
    if command -v uv >/dev/null; then
        uv venv --quiet --python '>=3.11' .venv
        uv pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements.lock
        uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
    else
        command -v python3 >/dev/null || fail "needs Python 3.11 or newer, found none"
        python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            fail "needs Python 3.11 or newer, found $(python3 --version 2>&1)"
        python3 -m venv .venv || fail "could not make .venv (on Debian: apt install python3-venv)"
        .venv/bin/python -m pip install --quiet --require-hashes --requirement requirements.lock
        .venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
    fi
    echo "$wanted" > .venv/ready    # last, so that an interrupted setup starts over
}

case "${1:-}" in
    demo) setup; .venv/bin/python examples/demo.py ;;
    test) setup; shift
          .venv/bin/ruff check .
          .venv/bin/ruff format --check .
          .venv/bin/mypy
          .venv/bin/lint-imports --no-cache
          .venv/bin/python -m pytest "$@" ;;
    setup) setup ;;
    lock) command -v uv >/dev/null || fail "lock needs uv (pip install uv)"
          uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
              --custom-compile-command './run.sh lock' --group dev pyproject.toml --output-file requirements.lock ;;
    *) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
esac
